/**
 * The rows of all tables as one snapshot of PostgreSQL, and how they come into an empty database. Rows are copied as text, so
 * that a backup does not depend on the version, the processor or the host of PostgreSQL.
 */
import pg from "pg";
import { StartError } from "../errors.ts";
import type { ArchiveWriter } from "./archive-writer.ts";
import { copyIn, copyOut } from "./copy-protocol.ts";
import {
  type AppliedMigration,
  type ArchivedTable,
  type Manifest,
  type SequenceValue,
  toPartPath,
} from "./manifest.ts";
import { getErrorMessage } from "../../shared/error-message.ts";

/** Rows in one file of an archive, so that few bytes wait in memory. One longer row makes a longer file. */
const PART_BYTES = 4 * 2 ** 20;

/** The text of a value depends on these settings. */
const TEXT_SETTINGS = `set client_encoding = 'UTF8'; set datestyle = 'ISO'; set intervalstyle = 'postgres';
  set extra_float_digits = 1; set timezone = 'UTC'; set bytea_output = 'hex'; set statement_timeout = 0`;

/** Later queries of this client see the rows as they are now. */
export async function beginSnapshot(client: pg.Client): Promise<void> {
  await client.query(TEXT_SETTINGS);
  await client.query("begin isolation level repeatable read read only");
  await client.query("select 1");
}

/** What the manifest says about the database, in the client's snapshot. */
export async function describeDatabase(
  client: pg.Client,
): Promise<Pick<Manifest, "migrations" | "sequences">> {
  const { rows: migrations } = await client.query<AppliedMigration>(
    'select hash, created_at::float8 as "createdAtMs" from drizzle.__drizzle_migrations order by created_at',
  );
  // A sequence is not part of a snapshot: its value may be newer than the rows, which skips numbers only.
  const { rows: sequences } = await client.query<SequenceValue>(
    `select sequencename as name, last_value::text as value from pg_sequences
     where schemaname = 'public' and last_value is not null order by 1`,
  );
  return { migrations, sequences };
}

/** Adds the rows of each table to the archive. */
export async function archiveTables(
  client: pg.Client,
  archive: ArchiveWriter,
): Promise<ArchivedTable[]> {
  const tables: ArchivedTable[] = [];
  for (const [name, columns] of await listTables(client)) {
    let rows = 0;
    let part: Buffer[] = [];
    let [partBytes, parts] = [0, 0];
    const flush = async () => {
      await archive.addBytes(toPartPath(name, parts++), Buffer.concat(part));
      [part, partBytes] = [[], 0];
    };
    for await (const row of copyOut(client, `copy ${formatTarget(name, columns)} to stdout`)) {
      part.push(row as Buffer);
      partBytes += (row as Buffer).length;
      rows += 1;
      if (partBytes >= PART_BYTES) await flush();
    }
    if (partBytes > 0) await flush();
    tables.push({ name, columns, rows });
  }
  return tables;
}

/** @returns the columns of each table, without those that PostgreSQL computes. */
export async function listTables(client: pg.Client): Promise<Map<string, string[]>> {
  const { rows } = await client.query<{ name: string; columns: string[] }>(
    `select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
     from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
     where n.nspname = 'public' and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
     group by 1 order by 1`,
  );
  return new Map(rows.map(({ name, columns }) => [name, columns]));
}

/** Loads rows in the order of an archive, in one transaction. */
export class RowLoader {
  readonly #client: pg.Client;
  readonly #tables: Map<string, ArchivedTable>;
  readonly #loaded = new Map<string, number>();

  /** @param client of an empty database with the schema of the backup. */
  constructor(client: pg.Client, tables: ArchivedTable[]) {
    this.#client = client;
    this.#tables = new Map(tables.map((table) => [table.name, table]));
  }

  async begin(): Promise<void> {
    const existing = await listTables(this.#client);
    for (const { name, columns } of this.#tables.values()) {
      const known = new Set(existing.get(name));
      const unknown = columns.find((column) => !known.has(column));
      if (unknown !== undefined) {
        throw new StartError(
          `the backup has rows with ${name}.${unknown}, which its schema does not have: use an earlier backup`,
        );
      }
    }
    await this.#client.query(TEXT_SETTINGS);
    // Without foreign keys and triggers, which the order of the tables and the audit events would violate.
    await this.#client.query("begin; set local session_replication_role = replica");
  }

  async load(table: string, chunks: AsyncIterable<Buffer>): Promise<void> {
    const { name, columns } = this.#tables.get(table) ?? { name: table, columns: [] };
    if (columns.length === 0) {
      throw new StartError(`the backup does not describe the table ${name}: use an earlier backup`);
    }
    try {
      const rows = await copyIn(
        this.#client,
        `copy ${formatTarget(name, columns)} from stdin`,
        chunks,
      );
      this.#loaded.set(name, (this.#loaded.get(name) ?? 0) + rows);
    } catch (error) {
      if (error instanceof StartError) throw error;
      throw new StartError(
        `the rows of ${name} can't be restored: ${getErrorMessage(error)}; use an earlier backup`,
      );
    }
  }

  async commit(sequences: SequenceValue[]): Promise<void> {
    for (const { name, rows } of this.#tables.values()) {
      const loaded = this.#loaded.get(name) ?? 0;
      if (loaded !== rows) {
        throw new StartError(
          `${loaded} of ${rows} rows of ${name} were restored: use an earlier backup`,
        );
      }
    }
    for (const { name, value } of sequences) {
      await this.#client.query("select setval(format('public.%I', $1::text)::regclass, $2)", [
        name,
        value,
      ]);
    }
    await this.#client.query("commit");
  }
}

function formatTarget(name: string, columns: string[]): string {
  const list = columns.map((column) => pg.escapeIdentifier(column)).join(", ");
  return `public.${pg.escapeIdentifier(name)} (${list})`;
}
