/** `underpass http <port|host:port|URL|path>`: a public URL for a local web server or files, until it is stopped. */
import { httpJson, httpLines } from "../output/http.ts";
import { HttpScreen } from "../output/http-screen.ts";
import type { Output } from "../output/output.ts";
import { canShowScreen } from "../screen/terminal.ts";
import { ServiceApi } from "../service-api.ts";
import { getOnlyArgument, UsageError, type OptionValues } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { findTarget } from "../files/files-target.ts";
import { startInspectServer } from "../inspect/start-inspect-server.ts";
import { HttpTunnel, type TunnelOptions } from "../http-tunnel.ts";
import { getSubdomain } from "../tunnel-options.ts";
import type { Input } from "./command.ts";
import type { HTTP, HTTP_TUNNEL_OPTIONS } from "./table/http.ts";
import { runUntilStopped } from "./until-stopped.ts";

export async function run({ values, positionals }: Input<typeof HTTP.options>): Promise<number> {
  const missing = "the local port is missing; for example: underpass http 3000";
  const targetText = getOnlyArgument(positionals, missing);
  const definition = parseHttpTunnel(targetText, values);
  const { target } = definition;
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const tunnel = new HttpTunnel({ ...definition, server, token });
  const createOutput = (): Output => {
    if (values.json) return httpJson(tunnel, target);
    if (values["log-level"] !== undefined || !canShowScreen())
      return httpLines(tunnel, target, values["log-level"] ?? "info");
    const screen = new HttpScreen(server, new ServiceApi(server, token));
    screen.add(tunnel, target);
    return screen;
  };
  const output = createOutput();
  if (values.inspect !== "off") await startInspectServer(tunnel, values.inspect);
  return runUntilStopped(tunnel, output);
}

/** An HTTP tunnel as its options describe it, without the server and the token. */
export type HttpTunnelDefinition = Omit<TunnelOptions, "server" | "token">;

/** @param targetText the local server, as it was typed. @throws UsageError */
export function parseHttpTunnel(
  targetText: string,
  values: OptionValues<typeof HTTP_TUNNEL_OPTIONS>,
): HttpTunnelDefinition {
  const target = findTarget(targetText, { directoryListing: values["directory-listing"] });
  const subdomain = getSubdomain(values);
  if (values.url !== undefined && subdomain !== undefined)
    throw new UsageError("use --url or --subdomain, not both");
  return {
    target,
    host: values.url,
    gates: { basicAuth: values["basic-auth"], policy: values["policy-file"] },
    addedHeaders: values.header,
    hostMode: values["host-header"] ?? "auto",
    insecureUpstream: values["insecure-upstream"],
    settings: { ...values, subdomain },
  };
}
