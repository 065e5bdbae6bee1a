/** The server's entries in the database: fingerprints of the keys that its rows need, and whether it has an owner. */
import { createHash, randomInt } from "node:crypto";
import type pg from "pg";
import { StartError } from "../errors.ts";
import type { Fingerprint } from "../secrets.ts";

/**
 * Stores fingerprints of the keys at the first start and compares them at later ones.
 *
 * @throws StartError when the database was set up with another key: data encrypted with it could not be read.
 */
export async function assertSameKeys(client: pg.Client, keys: Fingerprint[]): Promise<void> {
  for (const { name, current, accepted } of keys) {
    const row = `fingerprint:${name}`;
    await client.query(
      "insert into installation (key, value) values ($1, $2) on conflict (key) do nothing",
      [row, current],
    );
    // With another key the update matches no row and changes nothing.
    const { rowCount } = await client.query(
      "update installation set value = $2 where key = $1 and value = any($3)",
      [row, current, accepted],
    );
    if (rowCount === 0) {
      throw new StartError(
        `${name}: not the key that this database was set up with (check DATA_DIR/secrets.json and the environment)`,
      );
    }
  }
}

export interface SetupCode {
  code: string;
  /** SHA-256 in hex. The Worker gets only the hash. */
  hash: string;
}

/**
 * Creates a code for the owner's account, a new one at each start; undefined when the owner exists. Accounts that others
 * have signed up do not count.
 */
export async function createSetupCode(client: pg.Client): Promise<SetupCode | undefined> {
  const { rows } = await client.query<{ hasOwner: boolean }>(
    'select exists (select from users where is_superadmin) as "hasOwner"',
  );
  if (rows[0]?.hasOwner) return undefined;
  const code = generateCode();
  return { code, hash: createHash("sha256").update(code).digest("hex") };
}

/** 80 bits, in characters that are hard to confuse. */
function generateCode(): string {
  const alphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
  const letters = Array.from({ length: 16 }, () => alphabet[randomInt(alphabet.length)]);
  return letters.join("").replace(/(.{4})(?=.)/g, "$1-");
}
