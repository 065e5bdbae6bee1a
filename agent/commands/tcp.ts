/** `underpass tcp <port|host:port>`: a public TCP port for a local server, until it is stopped. */
import { canShowScreen } from "../screen/terminal.ts";
import { InspectedTunnels } from "../inspect/inspected-tunnels.ts";
import { startInspectServer } from "../inspect/start-inspect-server.ts";
import { TunnelScreen } from "../output/tunnel-screen.ts";
import type { Output } from "../output/output.ts";
import { printTcpJson, printTcpLines } from "../output/tcp.ts";
import { ServiceApi } from "../service-api.ts";
import { getOnlyArgument } from "../options.ts";
import { findServerAccess } from "../server-access.ts";
import { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import { parseTcpTunnel } from "../tcp/tcp-definition.ts";
import type { Input } from "./command.ts";
import type { TCP } from "./table/tcp.ts";
import { runUntilStopped } from "./run-until-stopped.ts";
import { PROGRAM } from "../program.ts";

export async function run({ values, positionals }: Input<typeof TCP.options>): Promise<number> {
  const targetText = getOnlyArgument(positionals, "the local port", `${PROGRAM} tcp 5432`);
  const definition = parseTcpTunnel(targetText, values);
  const { target } = definition;
  const access = await findServerAccess(values);
  const tunnel = new TcpTunnel({ ...definition, ...access });
  const createOutput = (): Output => {
    if (values.json) return printTcpJson(tunnel, target.text);
    if (values["log-level"] !== undefined || !canShowScreen())
      return printTcpLines(tunnel, target.text, values["log-level"] ?? "info");
    const screen = new TunnelScreen(access.server, new ServiceApi(access, access.token));
    screen.addTcp(tunnel, target);
    return screen;
  };
  const output = createOutput();
  const inspected = new InspectedTunnels();
  inspected.addTcp(tunnel, target.text);
  const stopInspector = await startInspectServer(tunnel, inspected, values.inspect);
  try {
    return await runUntilStopped(tunnel, output);
  } finally {
    stopInspector();
  }
}
