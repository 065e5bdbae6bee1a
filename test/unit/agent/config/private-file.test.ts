/** Files with secrets. */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writePrivateFile } from "../../../../agent/disk/private-file.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";

test("a secret that can't be saved is not left in another file", async () => {
  const directory = await createTemporaryDir();
  await mkdir(join(directory, "secret"));
  await expect(writePrivateFile(join(directory, "secret"), "text")).rejects.toThrow();
  expect(await readdir(directory)).toEqual(["secret"]);
});
