/** Directories for secrets. */
import { rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPrivateDirectory } from "../../../self-host/files.ts";
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
