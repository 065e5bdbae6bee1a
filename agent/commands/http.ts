/** `underpass http <port|host:port|URL|path>`: a public URL for a local web server or files, until it is stopped. */
import { printHttpJson, printHttpLines } from "../output/http.ts";
import { TunnelScreen } from "../output/tunnel-screen.ts";
import type { Output } from "../output/output.ts";
import { canShowScreen } from "../screen/terminal.ts";
import { ServiceApi } from "../service-api.ts";
import { getOnlyArgument } from "../options.ts";
import { findServerAccess } from "../server-access.ts";
import { InspectedTunnels } from "../inspect/inspected-tunnels.ts";
import { startInspectServer } from "../inspect/start-inspect-server.ts";
import { HttpTunnel } from "../tunnel/http-tunnel.ts";
import { parseHttpTunnel } from "../tunnel/http-definition.ts";
import type { Input } from "./command.ts";
import type { HTTP } from "./table/http.ts";
import { runUntilStopped } from "./run-until-stopped.ts";
import { PROGRAM } from "../program.ts";

export async function run({ values, positionals }: Input<typeof HTTP.options>): Promise<number> {
  const targetText = getOnlyArgument(positionals, "the local port", `${PROGRAM} http 3000`);
  const definition = parseHttpTunnel(targetText, values);
  const { target } = definition;
  const access = await findServerAccess(values);
  const tunnel = new HttpTunnel({ ...definition, ...access });
  const createOutput = (): Output => {
    if (values.json) return printHttpJson(tunnel, target);
    if (values["log-level"] !== undefined || !canShowScreen())
      return printHttpLines(tunnel, target, values["log-level"] ?? "info");
    const screen = new TunnelScreen(access.server, new ServiceApi(access, access.token));
    screen.add(tunnel, target);
    return screen;
  };
  const output = createOutput();
  const inspected = new InspectedTunnels();
  inspected.addHttp(tunnel);
  const stopInspector = await startInspectServer(tunnel, inspected, values.inspect);
  try {
    return await runUntilStopped(tunnel, output);
  } finally {
    stopInspector();
  }
}
