/** Prints results as tables and saves them as JSON. */
import { mkdir, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { BENCH } from "./processes.ts";

export interface Row {
  group: string;
  [column: string]: string | number;
}

export function printRows(rows: Row[]): void {
  for (const [group, members] of Object.entries(Object.groupBy(rows, (row) => row.group))) {
    console.log(`\n${group}`);
    console.table(members?.map((row) => Object.fromEntries(Object.entries(row).slice(1))));
  }
}

/** @returns the path of the file. */
export async function saveRows(rows: Row[]): Promise<string> {
  const directory = join(BENCH, "results");
  await mkdir(directory, { recursive: true });
  const at = new Date().toISOString();
  const path = join(directory, `${at.replaceAll(":", "-")}.json`);
  const machine = { cores: cpus().length, model: cpus()[0]?.model, node: process.version };
  await writeFile(path, `${JSON.stringify({ at, machine, rows }, null, 2)}\n`);
  return path;
}
