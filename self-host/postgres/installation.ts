/** What the database knows of the server in front of it: whose keys its rows need, and whether it is new. */
import { createHash, randomInt } from "node:crypto";
import type pg from "pg";
import { StartError } from "../errors.ts";
import type { Fingerprint } from "../secrets.ts";

/**
 * Remembers the keys at the first start and compares them at later ones.
 *
 * @throws StartFailure when the rows belong to another key: serving them would lose what it sealed.
 */
export async function assertSameKeys(client: pg.Client, keys: Fingerprint[]): Promise<void> {
  for (const { name, current, accepted } of keys) {
    const row = `fingerprint:${name}`;
    await client.query(
      "insert into installation (key, value) values ($1, $2) on conflict (key) do nothing",
      [row, current],
    );
    // An update that finds no row says "another key" and changes nothing.
    const { rowCount } = await client.query(
      "update installation set value = $2 where key = $1 and value = any($3)",
      [row, current, accepted],
    );
    if (rowCount === 0) {
      throw new StartError(
        `${name}: is not the key that this database was set up with (in DATA_DIR/secrets.json or the environment)`,
      );
    }
  }
}

export interface SetupCode {
  code: string;
  /** SHA-256 in hex: all that the Worker is told. */
  hash: string;
}

/** A code that makes the first account; undefined once anybody has one. A new start makes a new code. */
export async function createSetupCode(client: pg.Client): Promise<SetupCode | undefined> {
  const { rows } = await client.query<{ taken: boolean }>(
    "select exists (select from users) as taken",
  );
  if (rows[0]?.taken) return undefined;
  const code = generateCode();
  return { code, hash: createHash("sha256").update(code).digest("hex") };
}

/** 80 bits in letters that are hard to confuse. */
function generateCode(): string {
  const alphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
  const letters = Array.from({ length: 16 }, () => alphabet[randomInt(alphabet.length)]);
  return letters.join("").replace(/(.{4})(?=.)/g, "$1-");
}
