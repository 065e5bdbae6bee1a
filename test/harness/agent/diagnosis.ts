/** The checks of `underpass doctor`, run in the test's process. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseLocalServer } from "../../../agent/commands/doctor.ts";
import type { CheckName, Report } from "../../../agent/doctor/check.ts";
import { startChecks } from "../../../agent/doctor/doctor.ts";
import type { TrustedAuthorities } from "../../../agent/outgoing/trusted-authorities.ts";

export type Diagnosis = Record<CheckName, Report>;

/** @param options the server, a file with the token's bytes, and the local server as it is typed. */
export async function diagnose(options: {
  server: string;
  tokenFile: string | undefined;
  local?: string;
  authorities?: TrustedAuthorities | undefined;
}): Promise<Diagnosis> {
  const { server, tokenFile, local, authorities } = options;
  const target = local === undefined ? undefined : parseLocalServer(local);
  const reports = await Promise.all(startChecks({ target, server, tokenFile, authorities }));
  return Object.fromEntries(reports.map((report) => [report.check, report])) as Diagnosis;
}

export function formatReport({ status, result, advice }: Report): string {
  return `${status}: ${result} -> ${advice}`;
}

/** The names of the checks with this status. */
export function pickChecks(diagnosis: Diagnosis, status: Report["status"]): CheckName[] {
  return Object.values(diagnosis).flatMap((report) =>
    report.status === status ? report.check : [],
  );
}

/** A file with a token, which only its owner can read. */
export async function saveToken(
  directory: string,
  name: string,
  bytes: Uint8Array,
): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, bytes, { mode: 0o600 });
  return path;
}
