/** `underpass connect <tunnel> --listen ADDR`: a local port that leads to a TCP tunnel, without its public port. */
import { LocalPort } from "../connect/local-port.ts";
import { parseListenAddress } from "../connect/listen-address.ts";
import { connectJson, connectLines, type ConnectOutput } from "../output/connect.ts";
import { parseOptions, UsageError, type OptionSpec } from "../options.ts";
import { findServer, findToken } from "../settings.ts";
import { parseLevel } from "./option-values.ts";

export const connectOptions = {
  listen: {
    kind: "text",
    value: "ADDR",
    help: "where to listen: 5433, 127.0.0.1:5433, [::1]:5433 (default: the tunnel's own port)",
  },
  server: { kind: "text", value: "URL", help: "the Underpass server (default: the last login)" },
  "token-file": { kind: "text", value: "FILE", help: "a file with the capability token's bytes" },
  json: { kind: "flag", help: "one JSON object a line" },
  "log-level": { kind: "text", value: "LEVEL", help: "error, warn, info (default) or debug" },
} as const satisfies Record<string, OptionSpec>;

/** @returns the exit code: 0 stopped by the user, 1 rejected for good. */
export async function connect(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, connectOptions);
  const [tunnel, ...rest] = positionals;
  if (tunnel === undefined) {
    throw new UsageError("say which tunnel: underpass connect my-database --listen 5433");
  }
  if (rest.length > 0) throw new UsageError(`${rest[0]} is one argument too many`);
  const listen = parseListenAddress(values.listen);
  if (!listen) throw new UsageError(`--listen ${values.listen} is not a port or address:port`);
  const level = parseLevel(values["log-level"]);
  const server = await findServer(values.server);
  const token = await findToken(server, values["token-file"]);
  const local = new LocalPort({ server, token, tunnel, listen });
  const output = values.json ? connectJson(local, tunnel) : connectLines(local, tunnel, level);
  return run(local, output);
}

function run(local: LocalPort, output: ConnectOutput): Promise<number> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
      local.close();
      output.end();
      resolve(0);
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
    local.on("rejected", (rejection) => {
      output.end(rejection);
      resolve(1);
    });
    local.start().catch(reject);
  });
}
