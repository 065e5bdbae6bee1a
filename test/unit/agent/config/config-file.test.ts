/** Which underpass.yml a command uses without --config. */
import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { findConfigFile } from "../../../../agent/config/config-file.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";

const OTHER_USER = 54_321;

let parent: string;
let path: string;
beforeEach(async () => {
  parent = await createTemporaryDir();
  path = join(parent, "underpass.yml");
  await writeFile(path, "version: 1\n");
  await mkdir(join(parent, "project"));
});
afterEach(() => void vi.restoreAllMocks());

function enter(directory: string): void {
  vi.spyOn(process, "cwd").mockReturnValue(directory);
}

/** Makes the file that of another user: by root in the file system, otherwise for the agent only. */
async function giveAway(): Promise<void> {
  if (process.getuid?.() === 0) return chown(path, OTHER_USER, OTHER_USER);
  vi.spyOn(process as { getuid: () => number }, "getuid").mockReturnValue(OTHER_USER);
}

test("a file in the nearest parent directory is used", async () => {
  enter(join(parent, "project"));
  expect(await findConfigFile(undefined)).toBe(path);
});

test("a file of another user in a parent directory is used only with --config", async () => {
  await giveAway();
  enter(join(parent, "project"));
  await expect(findConfigFile(undefined)).rejects.toThrow(
    `${path} belongs to another user; to use it nevertheless, pass --config ${path}`,
  );
  expect(await findConfigFile(path)).toBe(path);
});

test("a file of another user in the current directory is used", async () => {
  await giveAway();
  enter(parent);
  expect(await findConfigFile(undefined)).toBe(path);
});
