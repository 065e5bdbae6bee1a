/** `underpass doctor [port|host:port|URL]`: finds out why a tunnel can't be opened, or its visitors get errors. */
import { startChecks } from "../doctor/doctor.ts";
import { printReports, printReportsJson } from "../output/doctor.ts";
import { rejectEmpty, rejectExtraArguments, UsageError } from "../options.ts";
import { readAuthorities } from "../outgoing/trusted-authorities.ts";
import { describeInvalidAddress, parseTarget } from "../origin/target.ts";
import type { Input } from "./command.ts";
import type { DOCTOR } from "./table/doctor.ts";

export async function run({ values, positionals }: Input<typeof DOCTOR.options>): Promise<number> {
  const [targetText, ...extra] = positionals;
  rejectExtraArguments(extra);
  if (targetText !== undefined) rejectEmpty(targetText, "the local port");
  const target = targetText === undefined ? undefined : parseTarget(targetText);
  if (target === null)
    throw new UsageError(describeInvalidAddress(targetText!, "port, host:port or http(s) URL"));
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
