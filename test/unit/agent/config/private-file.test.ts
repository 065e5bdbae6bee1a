/** Files with secrets. */
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeNewFile } from "../../../../agent/disk/new-file.ts";
import { writePrivateFile } from "../../../../agent/disk/private-file.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";

test("a secret that can't be saved is not left in another file", async () => {
  const directory = await createTemporaryDir();
  await mkdir(join(directory, "secret"));
  await expect(writePrivateFile(join(directory, "secret"), "text")).rejects.toThrow();
  expect(await readdir(directory)).toEqual(["secret"]);
});

test("a new file that can't be written to its end does not exist, so that it can be tried again", async () => {
  const directory = await createTemporaryDir();
  // oxlint-disable-next-line require-yield -- It fails, as a full disk does.
  const failing = (function* () {
    throw new Error("no space left");
  })();
  const path = join(directory, "new");
  await expect(writeNewFile(path, failing as never)).rejects.toThrow("no space left");
  expect(await readdir(directory)).toEqual([]);
  await writeNewFile(path, "text");
  await expect(writeNewFile(path, "other")).rejects.toThrow("EEXIST");
  expect(await readFile(path, "utf8")).toBe("text");
});
