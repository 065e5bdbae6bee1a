/** The files of a network whose server is this machine: `~/.config/underpass/networks/<network>/`. */
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { readPrivateFile, writePrivateFile } from "../../disk/private-file.ts";
import { getSettingsDirectory } from "../../settings.ts";
import { SettingsError } from "../../settings-error.ts";
import { derivePublicKey, generatePrivateKey, parseKey } from "../wireguard/keys.ts";

const State = z.object({
  /** Origin of the Underpass server. */
  server: z.string(),
  networkId: z.string(),
  interface: z.string(),
  /** SHA-256 of the configuration that was last written: a file with another hash was edited by hand. */
  configHash: z.string().optional(),
});
export type NetworkState = z.infer<typeof State>;

export interface ServerKeys {
  privateKey: string;
  publicKey: string;
  /** Whether they were generated just now. */
  isNew: boolean;
}

export class NetworkStateDir {
  readonly path: string;

  /** @param dir replaces the default directory. */
  constructor(networkName: string, dir: string | undefined) {
    this.path = resolve(dir ?? join(getSettingsDirectory(), "networks", toFileName(networkName)));
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** @throws SettingsError when the private key's file exists but can't be used. */
  async readKeys(): Promise<ServerKeys | null> {
    const privateKey = await readPrivateFile(this.file("private.key"));
    if (privateKey === null) return null;
    if (!parseKey(privateKey)) {
      throw new SettingsError(
        `${this.file("private.key")} does not contain a WireGuard private key; restore it from a backup, or move it away and run --setup again`,
      );
    }
    return { privateKey: privateKey.trim(), publicKey: derivePublicKey(privateKey), isNew: false };
  }

  /** Reads the keys, or generates them. An existing key is never overwritten. */
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

/** A network's name may contain any character, a file name may not. */
function toFileName(name: string): string {
  const escaped = name.replaceAll(/[^A-Za-z0-9._-]/gu, (character) =>
    encodeURIComponent(character),
  );
  return escaped.replace(/^\./, "%2E");
}
