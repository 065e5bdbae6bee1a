/** The names of the tunnels in underpass.yml, for completion. */
import { parse } from "yaml";
import { z } from "zod";
import { findConfigFile, readConfigFile } from "./config-file.ts";

const NamesOnly = z.object({ tunnels: z.record(z.string(), z.unknown()) });

/**
 * @param given the file's path; without it, the file that `underpass start` would find.
 * @returns nothing when there is no file, or one that can't be used: `underpass start` says why.
 */
export async function listTunnelNames(given: string | undefined): Promise<string[]> {
  try {
    const text = await readConfigFile(await findConfigFile(given));
    return Object.keys(NamesOnly.parse(parse(text)).tunnels);
  } catch {
    return [];
  }
}
