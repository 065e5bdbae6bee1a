/** The copy of PostgreSQL's programs in a directory where every user can create files. */
import {
  chmod,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { StartError } from "../../../self-host/errors.ts";
import { type Binaries, copyBinaries } from "../../../self-host/postgres/binaries.ts";
import { createTemporaryDir } from "../../harness/directories.ts";

let root: string;
let temporary: string;
let installed: Binaries;

beforeEach(async () => {
  root = await createTemporaryDir();
  temporary = join(root, "tmp");
  const bin = join(root, "installed/bin");
  await mkdir(bin, { recursive: true });
  await mkdir(temporary);
  installed = { initdb: join(bin, "initdb"), postgres: join(bin, "postgres") };
  for (const program of Object.values(installed)) await writeFile(program, "the program");
  vi.stubEnv("TMPDIR", temporary);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(root, { recursive: true });
});

async function copy(): Promise<string> {
  return dirname(dirname((await copyBinaries(installed)).postgres));
}

test("the programs are copied once, and every user may run them", async () => {
  const dir = await copy();
  expect(dirname(dir)).toBe(temporary);
  const { postgres } = await copyBinaries(installed);
  expect(await readFile(postgres, "utf8")).toBe("the program");
  const { mode } = await stat(postgres);
  expect(mode & 0o777).toBe(0o755);
  expect(await readdir(temporary)).toHaveLength(1);
});

test("a link to a directory of this user is not used, because its owner could redirect it", async () => {
  const dir = await copy();
  const moved = join(root, "moved");
  await rename(dir, moved);
  await symlink(moved, dir);
  await expect(copy()).rejects.toThrow(dir);
  expect(await readdir(temporary)).toHaveLength(1);
});

test.each([
  ["a file", (path: string) => writeFile(path, "")],
  [
    "a directory to which others may write",
    async (path: string) => {
      await mkdir(join(path, "bin"), { recursive: true });
      await chmod(path, 0o777);
    },
  ],
])("%s is not used as the copy", async (_what, create) => {
  const dir = await copy();
  await rm(dir, { recursive: true });
  await create(dir);
  await expect(copy()).rejects.toThrow(StartError);
});

test("a link that another user has created beside it does not prevent the copy, and nothing is written through it", async () => {
  const dir = await copy();
  await rm(dir, { recursive: true });
  const victim = join(root, "victim");
  await mkdir(victim);
  await writeFile(join(victim, "secret"), "", { mode: 0o600 });
  await symlink(victim, `${dir}.${process.pid}.new`);
  expect(await copy()).toBe(dir);
  expect(await readdir(victim)).toEqual(["secret"]);
  const { mode } = await stat(join(victim, "secret"));
  expect(mode & 0o777).toBe(0o600);
});
