/** `underpass http <port|host:port|URL>`: a public URL for a local server, until it is stopped. */
import { parseHostMode } from "../host-header.ts";
import { JsonLines } from "../output/json-lines.ts";
import { PlainLines } from "../output/plain-lines.ts";
import { Screen } from "../output/screen.ts";
import { parseOptions, UsageError, type OptionSpec } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { parseTarget } from "../target.ts";
import { AgentTunnel, type Rejected } from "../tunnel.ts";
import { parseLevel, parseSeconds } from "./option-values.ts";

export const httpOptions = {
  server: { kind: "text", value: "URL", help: "the Underpass server (default: the last login)" },
  "token-file": { kind: "text", value: "FILE", help: "a file with the capability token's bytes" },
  subdomain: { kind: "text", value: "NAME", help: "the name to serve (default: a random one)" },
  project: { kind: "text", value: "SLUG", help: "the project the tunnel is in" },
  url: { kind: "text", value: "URL", help: "the public URL to serve, instead of --subdomain" },
  "host-header": {
    kind: "text",
    value: "MODE",
    help: "auto, preserve, rewrite, or the name to say to the local server",
  },
  "insecure-upstream": { kind: "flag", help: "accept any certificate of a local https server" },
  ttl: { kind: "text", value: "SECONDS", help: "end the tunnel after this time" },
  json: { kind: "flag", help: "one JSON object a line" },
  "log-level": { kind: "text", value: "LEVEL", help: "error, warn, info (default) or debug" },
} as const satisfies Record<string, OptionSpec>;

/** @returns the exit code: 0 stopped by the user, 1 rejected for good. */
export async function http(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, httpOptions);
  const [targetText, ...rest] = positionals;
  if (targetText === undefined) throw new UsageError("say which port: underpass http 3000");
  if (rest.length > 0) throw new UsageError(`one local server at a time; what is ${rest[0]}?`);
  const target = parseTarget(targetText);
  if (!target) throw new UsageError(`${targetText} is no port, host:port or http(s) URL`);
  const wanted = wantedName(values);
  const server = await findServer(values.server);
  const tunnel = new AgentTunnel({
    target,
    server,
    token: await findToken(server, values["token-file"]),
    hostMode: parseHostMode(values["host-header"] ?? "auto"),
    insecureUpstream: values["insecure-upstream"],
    subdomain: wanted.subdomain,
    project: values.project,
    ttlSeconds: parseSeconds(values.ttl),
  });
  const output = values.json
    ? new JsonLines(tunnel, target)
    : process.stdout.isTTY
      ? new Screen(tunnel, target)
      : new PlainLines(tunnel, target, parseLevel(values["log-level"]));
  return run(tunnel, output, wanted.host);
}

interface Output {
  /** What the person reads last. */
  end(rejection?: Rejected): void;
}

function run(tunnel: AgentTunnel, output: Output, wantedHost: string | undefined): Promise<number> {
  return new Promise((resolve) => {
    const stop = (): void => {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
      void tunnel.close().then(() => {
        output.end();
        resolve(0);
      });
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
    tunnel.on("rejected", (rejection) => {
      output.end(rejection);
      resolve(1);
    });
    tunnel.on("ready", ({ url }) => {
      if (wantedHost === undefined || new URL(url).hostname === wantedHost) return;
      process.stderr.write(`underpass: this server gives ${url}, not ${wantedHost}\n`);
      void tunnel.close().then(() => resolve(1));
    });
    tunnel.start();
  });
}

/** `--url https://name.domain` asks for a name and says where it should be. */
function wantedName(values: { subdomain: string | undefined; url: string | undefined }) {
  if (values.url === undefined) return { subdomain: values.subdomain, host: undefined };
  if (values.subdomain !== undefined)
    throw new UsageError("--url and --subdomain say the same thing");
  let host: string;
  try {
    host = new URL(values.url.includes("://") ? values.url : `https://${values.url}`).hostname;
  } catch {
    throw new UsageError(`${values.url} is no URL`);
  }
  return { subdomain: host.split(".")[0], host };
}
