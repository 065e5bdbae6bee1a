/** `underpass connect <tunnel> --listen ADDR`: a local port that leads to a TCP tunnel, without its public port. */
import { ClientConnectQuery } from "../../protocol/schemas/tunnels/tunnels.ts";
import { DEFAULT_LISTEN_ADDRESS } from "../connect/listen-address.ts";
import { LocalPort } from "../connect/local-port.ts";
import { printConnectJson, printConnectLines } from "../output/connect.ts";
import { getOnlyArgument, UsageError } from "../options.ts";
import { findServerAccess } from "../server-access.ts";
import type { Input } from "./command.ts";
import { runUntilStopped } from "./run-until-stopped.ts";
import type { CONNECT } from "./table/connect.ts";
import { PROGRAM } from "../program.ts";

export async function run({ values, positionals }: Input<typeof CONNECT.options>): Promise<number> {
  const example = `${PROGRAM} connect my-database --listen 5433`;
  const tunnel = getOnlyArgument(positionals, "the tunnel", example);
  if (!ClientConnectQuery.safeParse({ tunnel }).success)
    throw new UsageError(
      `${tunnel} is not the name or id of a tunnel, such as my-database; to list the names, run: ${PROGRAM} tunnels`,
    );
  const local = new LocalPort({
    ...(await findServerAccess(values)),
    tunnel,
    listen: values.listen ?? DEFAULT_LISTEN_ADDRESS,
  });
  const output = values.json
    ? printConnectJson(local, tunnel)
    : printConnectLines(local, tunnel, values["log-level"] ?? "info");
  return runUntilStopped(local, output);
}
