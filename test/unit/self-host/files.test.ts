/** Directories for secrets. */
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPrivateDirectory, writePrivateFile } from "../../../self-host/files.ts";
import { createTemporaryDir } from "../../harness/directories.ts";

let root: string;

beforeAll(async () => {
  root = await createTemporaryDir();
});
afterAll(() => rm(root, { recursive: true, force: true }));

test("a directory that several calls create at the same time, with those above it, is created once", async () => {
  const path = join(root, "certificates/example.com/keys");
  await Promise.all(Array.from({ length: 20 }, () => createPrivateDirectory(path)));
  const { mode } = await stat(path);
  expect(mode & 0o777).toBe(0o700);
});

test("a file in the place of a directory is an error that names it", async () => {
  const path = join(root, "file");
  await writeFile(path, "");
  await expect(createPrivateDirectory(path)).rejects.toThrow(path);
});

test("a file that can't be replaced leaves nothing behind", async () => {
  const path = join(root, "secrets/key");
  await mkdir(path, { recursive: true });
  await expect(writePrivateFile(path, "secret")).rejects.toThrow("EISDIR");
  expect(await readdir(join(root, "secrets"))).toEqual(["key"]);
});
