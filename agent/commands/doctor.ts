/** `underpass doctor [port|host:port|URL]`: finds out why a tunnel can't be opened, or its visitors get errors. */
import { startChecks } from "../doctor/doctor.ts";
import { printReports, printReportsJson } from "../output/doctor.ts";
import { rejectEmpty, rejectExtraArguments, UsageError } from "../options.ts";
import { readAuthorities } from "../outgoing/trusted-authorities.ts";
import { parseUnixSocket } from "../local-server/unix-socket.ts";
import {
  createSocketTarget,
  describeInvalidAddress,
  parseTarget,
  type Target,
} from "../origin/target.ts";
import type { Input } from "./command.ts";
import type { DOCTOR } from "./table/doctor.ts";

export async function run({ values, positionals }: Input<typeof DOCTOR.options>): Promise<number> {
  const [targetText, ...extra] = positionals;
  rejectExtraArguments(extra);
  if (targetText !== undefined) rejectEmpty(targetText, "the local port");
  const target = targetText === undefined ? undefined : parseLocalServer(targetText);
  const caFile = values["ca-file"];
  const reports = startChecks({
    target,
    server: values.server,
    tokenFile: values["token-file"],
    authorities: caFile === undefined ? undefined : await readAuthorities(caFile),
  });
  const isBroken = await (values.json ? printReportsJson(reports) : printReports(reports));
  return isBroken ? 1 : 0;
}

/** @throws UsageError */
export function parseLocalServer(text: string): Target {
  const socketPath = parseUnixSocket(text);
  const target = socketPath === null ? parseTarget(text) : createSocketTarget(socketPath);
  if (target) return target;
  throw new UsageError(describeInvalidAddress(text, "port, host:port, http(s) URL or unix:path"));
}
