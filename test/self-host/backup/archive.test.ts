/** The file of a backup: written by one process, read by another one that trusts nothing in it. */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { verifyArchive } from "../../../self-host/backup/archive-reader.ts";
import { ArchiveWriter } from "../../../self-host/backup/archive-writer.ts";
import {
  BACKUP_FORMAT,
  MANIFEST_MAX_BYTES,
  type Manifest,
} from "../../../self-host/backup/manifest.ts";
import { formatTarHeader, TAR_FILE_MAX_BYTES } from "../../../self-host/backup/tar.ts";
import { readMigrations } from "../../../self-host/postgres/migrate.ts";
import { runRestore } from "../../harness/backup/commands.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { startExpectingFailure } from "../../harness/server/server.ts";

const FILES: Record<string, Buffer> = {
  "secrets.json": Buffer.from("{}"),
  "database/users/000000.copy": Buffer.from("1\tann\n".repeat(100_000)),
  [`objects/underpass-RateLimiter/${"0f".repeat(32)}.sqlite`]: Buffer.alloc(5_000, 7),
};
const DESCRIPTION: Omit<Manifest, "files"> = {
  format: BACKUP_FORMAT,
  version: "1.2.3",
  createdAt: "2026-11-23T22:00:00.000Z",
  migrations: readMigrations().map(({ hash, folderMillis }) => ({
    hash,
    createdAtMs: folderMillis,
  })),
  tables: [{ name: "users", columns: ["id", "email"], rows: 100_000 }],
  sequences: [],
  secretsInEnvironment: [],
};

let directory: string;
let written = 0;
beforeAll(async () => {
  directory = await createTemporaryDir();
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function write(files = FILES, description: object = {}): Promise<string> {
  const path = join(directory, `${(written += 1)}.tar.gz`);
  const archive = new ArchiveWriter(path);
  for (const [name, content] of Object.entries(files)) await archive.addBytes(name, content);
  await archive.finish({ ...DESCRIPTION, ...description });
  return path;
}

/** Writes an archive again after a change of the uncompressed bytes. */
async function change(path: string, edit: (tar: Buffer) => Buffer): Promise<string> {
  const changed = `${path}.changed`;
  await writeFile(changed, gzipSync(edit(gunzipSync(await readFile(path)))));
  return changed;
}

const replace = (from: string, to: string) => (tar: Buffer) =>
  Buffer.from(tar.toString("latin1").replace(from, to), "latin1");

test("an archive that was not changed is accepted", async () => {
  const { files, version } = await verifyArchive(await write());
  expect(version).toBe("1.2.3");
  expect(files.map(({ path, size }) => [path, size])).toEqual(
    Object.entries(FILES).map(([path, content]) => [path, content.length]),
  );
});

test("an archive that ends too early is refused, wherever it ends", async () => {
  const path = await write();
  const bytes = await readFile(path);
  for (const length of [0, 10, 600, bytes.length >> 1, bytes.length - 9, bytes.length - 1]) {
    const cut = `${path}.${length}`;
    await writeFile(cut, bytes.subarray(0, length));
    await expect(verifyArchive(cut)).rejects.toThrow(
      /is damaged or not a backup .*: copy it again/,
    );
  }
});

describe("an archive is refused", () => {
  test("with one changed byte in a file", async () => {
    const changed = await change(await write(), replace("1\tann\n1", "1\tbob\n1"));
    await expect(verifyArchive(changed)).rejects.toThrow(
      /database\/users\/000000.copy was changed/,
    );
  });

  test("with a changed byte of the compressed data", async () => {
    const path = await write();
    const bytes = await readFile(path);
    bytes[bytes.length >> 1]! ^= 0x10;
    await writeFile(path, bytes);
    await expect(verifyArchive(path)).rejects.toThrow(/is damaged/);
  });

  test("with a path that leads out of the directory, or to another kind of file", async () => {
    const hostile = [
      "../secrets.json",
      "/etc/passwd",
      "objects/../../x.sqlite",
      "objects/a.sqlite",
    ];
    for (const name of hostile) {
      const path = await write({ ...FILES, [name]: Buffer.from("x") });
      await expect(verifyArchive(path)).rejects.toThrow(/list of files is invalid at files/);
    }
  });

  test("without its list of files", async () => {
    const end = Buffer.alloc(1_024);
    const withoutEnd = (tar: Buffer) => {
      const cut = tar.indexOf("manifest.json");
      return Buffer.concat([tar.subarray(0, cut), end]);
    };
    const changed = await change(await write(), withoutEnd);
    await expect(verifyArchive(changed)).rejects.toThrow(/its end is missing/);
  });

  test("when its list of files would fill the memory", async () => {
    const tooLong = formatTarHeader({ path: "manifest.json", size: MANIFEST_MAX_BYTES + 1 });
    const path = join(directory, "long.tar.gz");
    await writeFile(path, gzipSync(tooLong));
    await expect(verifyArchive(path)).rejects.toThrow(/its list of files is too long/);
  });

  test("when it is written, if its list of files is longer than a restore accepts", async () => {
    const archive = new ArchiveWriter(join(directory, "many-files.tar.gz"));
    const secretsInEnvironment = ["x".repeat(MANIFEST_MAX_BYTES)];
    const finished = archive.finish({ ...DESCRIPTION, secretsInEnvironment });
    await expect(finished).rejects.toThrow(
      /there are too many files: .* stop the server and copy its data directory instead/,
    );
    await archive.abort();
  });

  test("of a newer version, before anything is written", async () => {
    const target = join(directory, "target");
    const newest = { hash: "f".repeat(64), createdAtMs: 9_000_000_000_000 };
    const newer = [
      { migrations: [...DESCRIPTION.migrations, newest] },
      { format: BACKUP_FORMAT + 1 },
    ];
    for (const description of newer) {
      const { code, stdout, stderr } = await runRestore(await write(FILES, description), target);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toBe(
        "restore: the backup is of version 1.2.3, which is newer: install that version of Underpass, or a later one\n",
      );
    }
    await expect(readFile(target)).rejects.toThrow(/ENOENT/);
  });
});

test("a server does not start with what an interrupted restore has left", async () => {
  const dataDir = join(directory, "interrupted");
  await mkdir(join(dataDir, "restore.partial"), { recursive: true });
  const { code, stderr } = await startExpectingFailure({ DATA_DIR: dataDir });
  expect(code).toBe(1);
  expect(stderr).toMatch(/restore\.partial is from a restore that was interrupted: empty /);
  expect(await readdir(dataDir)).toEqual(["restore.partial"]);
});

test("a command without its options says how to call it", async () => {
  const { code, stderr } = await runRestore("", "");
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr:
      "restore: --from is missing; usage: npm run restore -- --from FILE --data-dir DIRECTORY\n",
  });
});

test("a file that the format has no room for is refused, instead of being cut", () => {
  const path = `objects/underpass-Tunnel/${"a".repeat(64)}.sqlite`;
  expect(() => formatTarHeader({ path, size: TAR_FILE_MAX_BYTES })).not.toThrow();
  expect(() => formatTarHeader({ path, size: TAR_FILE_MAX_BYTES + 1 })).toThrow(/does not fit/);
});
