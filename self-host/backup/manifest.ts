/** The last file of a backup: which files it has, and which schema its rows need. Without it a backup is incomplete. */
import { z } from "zod";

export const MANIFEST_PATH = "manifest.json";
export const SECRETS_PATH = "secrets.json";
/** Raised when an older version could not restore a backup. */
export const BACKUP_FORMAT = 1;
/** Longer than the manifest of 200,000 objects. */
export const MANIFEST_MAX_BYTES = 64 * 2 ** 20;

const TABLE_NAME = "[a-z][a-z0-9_]{0,62}";
const OBJECT_PATH = "underpass-[A-Za-z]{1,40}/(?:[0-9a-f]{64}|metadata)\\.sqlite";
/** Every path that a backup can have, so that none leads out of the directory that it is restored to. */
const FilePath = z
  .string()
  .regex(
    new RegExp(`^(?:secrets\\.json|database/${TABLE_NAME}/\\d{6}\\.copy|objects/${OBJECT_PATH})$`),
  );
const Name = z.string().regex(new RegExp(`^${TABLE_NAME}$`));

export const ArchivedFile = z.object({
  path: FilePath,
  /** Bytes. */
  size: z.int().nonnegative(),
  /** In hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type ArchivedFile = z.output<typeof ArchivedFile>;

const ArchivedTable = z.object({
  name: Name,
  columns: z.array(Name).min(1),
  rows: z.int().nonnegative(),
});
export type ArchivedTable = z.output<typeof ArchivedTable>;

const AppliedMigration = z.object({ hash: z.string().max(128), createdAtMs: z.int() });
export type AppliedMigration = z.output<typeof AppliedMigration>;

const SequenceValue = z.object({ name: Name, value: z.string().regex(/^\d{1,19}$/) });
export type SequenceValue = z.output<typeof SequenceValue>;

export const Manifest = z.object({
  format: z.int().positive(),
  /** The version of Underpass that made the backup. */
  version: z.string().max(64),
  createdAt: z.iso.datetime(),
  migrations: z.array(AppliedMigration).min(1),
  tables: z.array(ArchivedTable),
  sequences: z.array(SequenceValue),
  /** Secrets that were set in the environment of the server, and are not in the backup. */
  secretsInEnvironment: z.array(z.string().max(64)),
  files: z.array(ArchivedFile),
});
export type Manifest = z.output<typeof Manifest>;

export function toPartPath(table: string, part: number): string {
  return `database/${table}/${String(part).padStart(6, "0")}.copy`;
}

/** @returns the table whose rows a file has; undefined for other files. */
export function parsePartPath(path: string): string | undefined {
  return /^database\/([^/]+)\//.exec(path)?.[1];
}
