/**
 * Records which peers of the WireGuard interface this agent added. Only those are removed with their device; peers that the
 * operator added by hand are not.
 */
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { writePrivateFile } from "../../disk/private-file.ts";
import { readJson } from "./network-state-dir.ts";

const File = z.object({ publicKeys: z.array(z.string()) });

export class AppliedPeers {
  readonly #path: string;
  #keys: Set<string> | undefined;

  /** @param directory the network's. */
  constructor(directory: string) {
    this.#path = join(directory, "applied-peers.json");
  }

  async list(): Promise<ReadonlySet<string>> {
    this.#keys ??= new Set((await readJson(this.#path, File))?.publicKeys);
    return this.#keys;
  }

  async add(publicKeys: string[]): Promise<void> {
    const known = await this.list();
    await this.#write(new Set([...known, ...publicKeys]));
  }

  async remove(publicKey: string): Promise<void> {
    const keys = new Set(await this.list());
    keys.delete(publicKey);
    await this.#write(keys);
  }

  async #write(keys: Set<string>): Promise<void> {
    if (keys.size === this.#keys?.size) return;
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    const text = JSON.stringify({ publicKeys: [...keys] } satisfies z.infer<typeof File>, null, 2);
    await writePrivateFile(this.#path, `${text}\n`);
    this.#keys = keys;
  }
}
