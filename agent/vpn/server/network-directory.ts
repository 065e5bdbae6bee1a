/** What this machine keeps of a network whose server it is: `~/.config/underpass/networks/<network>/`. */
import { chmod, mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { SettingsError, getSettingsDirectory } from "../../settings.ts";
import { derivePublicKey, generatePrivateKey, parseKey } from "../wireguard/keys.ts";

const State = z.object({
  /** Origin of the Underpass server. */
  server: z.string(),
  networkId: z.string(),
  interface: z.string(),
  /** SHA-256 of the configuration as it was written last: one that differs was edited by hand. */
  configHash: z.string().optional(),
});
export type NetworkState = z.infer<typeof State>;

export interface ServerKeys {
  privateKey: string;
  publicKey: string;
  /** Whether they were made just now. */
  isNew: boolean;
}

export class NetworkDirectory {
  readonly path: string;

  /** @param dir instead of the default. */
  constructor(networkName: string, dir: string | undefined) {
    this.path = resolve(dir ?? join(getSettingsDirectory(), "networks", toFileName(networkName)));
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** @throws SettingsError when the private key is there and can't be used. */
  async readKeys(): Promise<ServerKeys | null> {
    const privateKey = await readPrivateFile(this.file("private.key"));
    if (privateKey === null) return null;
    if (!parseKey(privateKey)) {
      throw new SettingsError(`${this.file("private.key")} does not hold a WireGuard private key`);
    }
    return { privateKey: privateKey.trim(), publicKey: derivePublicKey(privateKey), isNew: false };
  }

  /** The keys that are there, or new ones. A key that exists is never overwritten. */
  async ensureKeys(): Promise<ServerKeys> {
    const known = await this.readKeys();
    if (known) return known;
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    const privateKey = generatePrivateKey();
    const publicKey = derivePublicKey(privateKey);
    await writeFile(this.file("private.key"), `${privateKey}\n`, { mode: 0o600, flag: "wx" });
    await writeFile(this.file("public.key"), `${publicKey}\n`);
    return { privateKey, publicKey, isNew: true };
  }

  async readState(): Promise<NetworkState | null> {
    return readJson(this.file("network.json"), State);
  }

  async writeState(state: NetworkState): Promise<void> {
    await writePrivateFile(this.file("network.json"), `${JSON.stringify(state, null, 2)}\n`);
  }
}

/** Writes a file that only its owner can read, whole or not at all. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, text, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}

/** @returns null when there is no such file. @throws SettingsError when others can read it. */
export async function readPrivateFile(path: string): Promise<string | null> {
  try {
    const { mode } = await stat(path);
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new SettingsError(`${path} can be read by others; run: chmod 600 ${path}`);
    }
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** @returns null when the file is missing. @throws SettingsError when it is damaged. */
export async function readJson<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
): Promise<z.output<Schema> | null> {
  const text = await readPrivateFile(path);
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new SettingsError(`${path} is damaged; delete it and run --setup again`);
  }
}

/** Networks may be called anything; a file may not. */
function toFileName(name: string): string {
  const escaped = name.replaceAll(/[^A-Za-z0-9._-]/gu, (character) =>
    encodeURIComponent(character),
  );
  return escaped.replace(/^\./, "%2E");
}
