/** The agent of the last release, as record.ts wrote it. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";

/** Unpacks the agent into a directory. @returns the command that runs it. */
export async function unpackRecordedAgent(dir: string): Promise<string[]> {
  const path = join(dir, "underpass.mjs");
  const compressed = await readFile(join(import.meta.dirname, "underpass.mjs.br"));
  await writeFile(path, brotliDecompressSync(compressed));
  return [process.execPath, path];
}
