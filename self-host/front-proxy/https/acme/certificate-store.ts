/** Certificates that were issued, in a directory: a file for each host name. */
import { generateKeyPairSync } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { createPrivateDirectory, writePrivateFile } from "../../../files.ts";
import type { KeyPair } from "../certificate-files.ts";

const EXTENSION = ".json";
/** No host name contains an underscore. */
const ACCOUNT_FILE = "_account.pem";
const StoredKeyPair = z.object({ cert: z.string(), key: z.string() });

export class CertificateStore {
  readonly #directory: string;

  /** @param directory absolute; it is created. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  async listNames(): Promise<string[]> {
    const files = await readdir(this.#directory).catch(() => []);
    return files
      .filter((file) => file.endsWith(EXTENSION))
      .map((file) => file.slice(0, -EXTENSION.length));
  }

  /** @returns undefined when there is none, or its file can't be read. */
  async read(name: string): Promise<KeyPair | undefined> {
    const text = await readFile(this.#getPath(name), "utf8").catch(() => "null");
    try {
      return StoredKeyPair.safeParse(JSON.parse(text)).data;
    } catch {
      return undefined;
    }
  }

  async write(name: string, keyPair: KeyPair): Promise<void> {
    await createPrivateDirectory(this.#directory);
    await writePrivateFile(this.#getPath(name), JSON.stringify(keyPair));
  }

  async remove(name: string): Promise<void> {
    await rm(this.#getPath(name), { force: true });
  }

  /** @returns the private key of the account with the certificate authority, in PEM. The first call creates it. */
  async getAccountKey(): Promise<string> {
    const path = join(this.#directory, ACCOUNT_FILE);
    const known = await readFile(path, "utf8").catch(() => undefined);
    if (known !== undefined) return known;
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    await createPrivateDirectory(this.#directory);
    await writePrivateFile(path, key);
    return key;
  }

  #getPath(name: string): string {
    return join(this.#directory, `${name}${EXTENSION}`);
  }
}
