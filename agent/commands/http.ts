/** `underpass http <port|host:port|URL|path>`: a public URL for a local web server or files, until it is stopped. */
import { httpJson, httpLines, httpScreen } from "../output/http.ts";
import { getOnlyArgument, UsageError, type OptionValues } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { findTarget } from "../files/files-target.ts";
import { startInspectServer } from "../inspect/start-inspect-server.ts";
import { HttpTunnel, type TunnelOptions } from "../http-tunnel.ts";
import type { Input } from "./command.ts";
import type { HTTP, HTTP_TUNNEL_OPTIONS } from "./table/http.ts";
import { runUntilStopped } from "./until-stopped.ts";

export async function run({ values, positionals }: Input<typeof HTTP.options>): Promise<number> {
  const missing = "the local port is missing; for example: underpass http 3000";
  const targetText = getOnlyArgument(positionals, missing);
  const definition = parseHttpTunnel(targetText, values);
  const { target, requestedHost } = definition;
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const tunnel = new HttpTunnel({ ...definition, server, token });
  const output = values.json
    ? httpJson(tunnel, target)
    : process.stdout.isTTY
      ? httpScreen(tunnel, target)
      : httpLines(tunnel, target, values["log-level"] ?? "info");
  if (values.inspect !== "off") await startInspectServer(tunnel, values.inspect);
  const running = runUntilStopped(tunnel, output);
  if (requestedHost === undefined) return running;
  return Promise.race([running, closeOnOtherHost(tunnel, requestedHost)]);
}

/** An HTTP tunnel as its options describe it, without the server and the token. */
export interface HttpTunnelDefinition extends Omit<TunnelOptions, "server" | "token"> {
  /** The host of `--url`, at which the server must serve the tunnel. */
  requestedHost: string | undefined;
}

/** @param targetText the local server, as it was typed. @throws UsageError */
export function parseHttpTunnel(
  targetText: string,
  values: OptionValues<typeof HTTP_TUNNEL_OPTIONS>,
): HttpTunnelDefinition {
  const target = findTarget(targetText, { directoryListing: values["directory-listing"] });
  const requested = parseRequestedName(values);
  return {
    target,
    requestedHost: requested.host,
    hostMode: values["host-header"] ?? "auto",
    insecureUpstream: values["insecure-upstream"],
    settings: { ...values, subdomain: requested.subdomain },
  };
}

/** Resolves with the exit code when the server gives the tunnel another host than `--url` asks for. */
function closeOnOtherHost(tunnel: HttpTunnel, requestedHost: string): Promise<number> {
  return new Promise((resolve) => {
    tunnel.on("ready", ({ url }) => {
      if (new URL(url).hostname === requestedHost) return;
      process.stderr.write(
        `underpass: this server serves the tunnel at ${url}, not at ${requestedHost}; use --subdomain\n`,
      );
      void tunnel.close().then(() => resolve(1));
    });
  });
}

/** `--url https://name.domain` asks for a name, and for the host that it must be served at. */
function parseRequestedName(values: { subdomain: string | undefined; url: string | undefined }): {
  subdomain: string | undefined;
  host: string | undefined;
} {
  const { subdomain, url } = values;
  if (url === undefined) return { subdomain, host: undefined };
  if (subdomain !== undefined) throw new UsageError("use --url or --subdomain, not both");
  const absolute = url.includes("://") ? url : `https://${url}`;
  if (!URL.canParse(absolute)) throw new UsageError(`--url ${url} is not a valid URL`);
  const host = new URL(absolute).hostname;
  return { subdomain: host.split(".")[0], host };
}
