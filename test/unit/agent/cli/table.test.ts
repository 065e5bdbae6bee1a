/** The table of commands: what derives from it is complete, and fits a terminal. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, test, vi } from "vitest";
import { formatCommandHelp, formatOverview } from "../../../../agent/cli/help.ts";
import { formatReference } from "../../../../agent/cli/reference.ts";
import { runCommandLine } from "../../../../agent/cli/run-command-line.ts";
import { COMMANDS } from "../../../../agent/commands/table/table.ts";
import { parseOptions, UsageError } from "../../../../agent/options.ts";
import { ROOT } from "../../../../self-host/build/build.ts";

const rows = COMMANDS.flatMap((command) => [
  [command.name, command] as const,
  ...(command.subcommands ?? []).map(
    (subcommand) => [`${command.name} ${subcommand.name}`, subcommand] as const,
  ),
]);

async function getFailure(line: string): Promise<string> {
  const failed: unknown = await runCommandLine(line.split(" ")).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(UsageError);
  return (failed as UsageError).message;
}

test("docs/cli.md is up to date: run `npm run docs` after a change of the table", async () => {
  expect(await readFile(join(ROOT, "docs/cli.md"), "utf8")).toBe(formatReference());
});

test.each([40, 60, 80, 200])(
  "on a terminal of %i columns each line of the help fits",
  (columns) => {
    const texts = [
      formatOverview(columns),
      ...rows.map(([path, command]) => formatCommandHelp(command, path, columns)),
    ];
    const lines = texts.flatMap((text) => stripVTControlCharacters(text).split("\n"));
    // An example is a line to copy: it is not wrapped.
    const wide = lines.filter((line) => line.length > Math.min(columns, 80));
    expect(wide.filter((line) => columns >= 80 || !line.startsWith("  underpass "))).toEqual([]);
  },
);

test("where the terminal reports 0 columns, the help is as wide as where the width is unknown", () => {
  expect(formatOverview(0)).toBe(formatOverview(undefined));
});

test.each(rows)("the examples of %s are its own, and their options are valid", (path, command) => {
  for (const [line] of command.examples ?? []) {
    const [, name, args = ""] = /underpass (\S+) ?(.*)$/.exec(line) ?? [];
    expect(name).toBe(path.split(" ")[0]);
    expect(() => parseOptions(args.split(" "), command.options)).not.toThrow();
  }
});

test.each(rows)(
  "%s has code, usages that begin with its name, and one-line texts",
  async (path, command) => {
    if (!command.subcommands) expect(await command.load?.()).toBeTypeOf("function");
    for (const usage of command.usages) expect(usage.split(" ")[0]).toBe(path.split(" ")[0]);
    for (const text of [
      command.summary,
      ...Object.values(command.options).map(({ help }) => help),
    ]) {
      expect(text).toMatch(/^[^\n]*[^\n.]$/);
    }
  },
);

test.each([
  ["htpt 3000", "unknown command: htpt; did you mean http?"],
  ["lgoin", "unknown command: lgoin; did you mean login?"],
  ["zzz", "unknown command: zzz"],
  ["udp 53", "unknown command: udp; for UDP, use a private network: underpass vpn NETWORK --setup"],
  ["3000", "unknown command: 3000; did you mean: underpass http 3000?"],
  [
    "localhost:3000",
    "unknown command: localhost:3000; did you mean: underpass http localhost:3000?",
  ],
  ["config add-authtoken x", "unknown command: config; did you mean login?"],
  ["ls", "unknown command: ls; did you mean tunnels?"],
  [
    "tokens mint ci --valid-for 367d",
    "--valid-for must be hours or days such as 12h or 90d, at most 366d, not 367d",
  ],
  [
    "http http://localhost:3000/app",
    "http://localhost:3000/app has a path, which the visitor chooses; use http://localhost:3000",
  ],
  [
    "http localhost:3000/app?x",
    "localhost:3000/app?x has a path, which the visitor chooses; use http://localhost:3000",
  ],
  ["http 3000/app", "3000/app has a path, which the visitor chooses; use http://localhost:3000"],
  ["http 99999", "the port must be a number from 1 to 65535, not 99999"],
  ["http http://app:0", "the port must be a number from 1 to 65535, not 0"],
  ["tcp db:99999", "the port must be a number from 1 to 65535, not 99999"],
  ["tcp 5432x", "5432x is not a port, host:port or unix:path: a port has digits only"],
  [
    "doctor 3000x",
    "3000x is not a port, host:port, http(s) URL or unix:path: a port has digits only",
  ],
  ["tcp 5432/x", "5432/x is not a port, host:port or unix:path"],
  ["tcp db.internal", "db.internal has no port; use host:port, for example db.internal:5432"],
  [
    "tcp https://localhost:3000",
    "https://localhost:3000 is an HTTP server; use `underpass http https://localhost:3000`, or its host:port for a public TCP port",
  ],
  [
    "connect db --listen 65536",
    "--listen must be a port up to 65535, or an address such as 127.0.0.1:5433, not 65536",
  ],
  ["login --email ann@example.com", "--email needs --setup"],
  ["start --schema web", "unexpected argument: web"],
  ["doctor 70000", "the port must be a number from 1 to 65535, not 70000"],
  ["tls 443", "unknown command: tls; did you mean tcp?"],
  [
    "http missing/app",
    "missing/app is not a port, host:port, http(s) URL, unix:path, file or directory",
  ],
  [
    "http 3000 --host-header a/b",
    "--host-header must be auto, preserve, rewrite or a host name, not a/b",
  ],
  ["http 3000 --subdomian shop", "unknown option: --subdomian; did you mean --subdomain?"],
  ["http 3000 --jsno", "unknown option: --jsno; did you mean --json?"],
  ["http 3000 -x", "unknown option: -x"],
  ["http 3000 --foo", "unknown option: --foo"],
  ["http 3000 --ssubdomain=a", "unknown option: --ssubdomain; did you mean --subdomain?"],
  ["http 3000 --no-inspect", "unknown option: --no-inspect; use --inspect off"],
  [
    "http 3000 --domain shop.example.com",
    "unknown option: --domain; use --subdomain NAME, or --url for a whole host",
  ],
  ["tcp 3000 --hostname=shop", "unknown option: --hostname; use --subdomain NAME"],
  [
    "http 3000 --traffic-policy-file p.yml",
    "unknown option: --traffic-policy-file; use --policy-file FILE",
  ],
  [
    "http 3000 --authtoken x",
    "unknown option: --authtoken; run underpass login, or use --token-file FILE",
  ],
  [
    "http 3000 --oauth google",
    "unknown option: --oauth; the tunnel's page in the dashboard can require that visitors sign in",
  ],
  [
    "http 3000 --request-header-add a:b",
    "unknown option: --request-header-add; use --header 'NAME: VALUE'",
  ],
  [
    "http 3000 --region eu",
    "unknown option: --region; leave it out: the server has no regions to choose",
  ],
  [
    "http --port 3000",
    "unknown option: --port; the port is an argument: underpass http PORT, or underpass tcp PORT",
  ],
  [
    "tcp -p 22",
    "unknown option: -p; the port is an argument: underpass http PORT, or underpass tcp PORT",
  ],
  ["doctor --domain a", "unknown option: --domain"],
  ["http 3000 --token x", "unknown option: --token; run underpass login, or use --token-file FILE"],
  ["http 3000 --pooling-enabled", "unknown option: --pooling-enabled; use --pool"],
  ["http 3000 -s shop", "unknown option: -s; use --subdomain NAME"],
  ["http 3000 --no-tls-verify", "unknown option: --no-tls-verify; use --insecure-upstream"],
  ["http 3000 --http-host-header a", "unknown option: --http-host-header; use --host-header NAME"],
  [
    "http 3000 --local-host app.test",
    "unknown option: --local-host; the host is a part of the argument: underpass http HOST:PORT",
  ],
  ["tcp 22 --cidr-allow 192.0.2.0/24", "unknown option: --cidr-allow; use --allow CIDR"],
  [
    "http 3000 --cidr-allow 192.0.2.0/24",
    "unknown option: --cidr-allow; the tunnel's page in the dashboard has an IP allowlist",
  ],
  [
    "http 3000 --verify-webhook stripe",
    "unknown option: --verify-webhook; webhook receivers verify signatures: underpass help webhooks",
  ],
  [
    "http 3000 --log stdout",
    "unknown option: --log; redirect the output to a file, as lines or with --json",
  ],
  ["listen 3000", "unknown command: listen; did you mean webhooks?"],
  ["local 3000 --to bore.pub", "unknown command: local; did you mean http?"],
  ["access tcp", "unknown command: access; did you mean connect?"],
  ["update", "unknown command: update; run: npm install --global https://SERVER/underpass.tgz"],
  [
    "--port 3000",
    "unknown command: --port; a command comes first, for example: underpass http 3000",
  ],
  ["http 3000 --subdomain=", "the value of --subdomain is empty"],
  ["http ", "the local port is empty"],
  ["tcp ", "the local port is empty"],
  ["doctor ", "the local port is empty"],
  ["http 3000 --json=1", "--json takes no value"],
  ["http 3000 --subdomain", "the value of --subdomain is missing; for example: --subdomain=NAME"],
  [
    "http 3000 --subdomain --json",
    "the value of --subdomain is missing; for example: --subdomain=NAME",
  ],
  ["http 3000 --log-level loud", "--log-level must be error, warn, info or debug, not loud"],
  [
    "http 3000 --log-level dbeug",
    "--log-level must be error, warn, info or debug, not dbeug; did you mean debug?",
  ],
  ["tcp 22 --proxy-protocol 3", "--proxy-protocol must be v1 or v2, not 3"],
  ["tcp 22 --proxy-protocol v3", "--proxy-protocol must be v1 or v2, not v3"],
  ["tokens mint a --bandwidth -1", "--bandwidth must be a whole number from 1, not -1"],
  [
    "connect tcp://host:5432 --server http://127.0.0.1:1",
    "tcp://host:5432 is not the name or id of a tunnel, such as my-database; to list the names, run: underpass tunnels",
  ],
  [
    "connect My_Database --listen 0 --server http://127.0.0.1:1",
    "My_Database is not the name or id of a tunnel, such as my-database; to list the names, run: underpass tunnels",
  ],
  ["vpn office remvoe phone", "unknown subcommand of vpn: remvoe; did you mean remove?"],
  ["vpn office fly", "unknown subcommand of vpn: fly; use add, devices or remove"],
  ["vpn office --level debug", "unknown option: --level"],
  ["vpn office --log-level loud", "--log-level must be error, warn, info or debug, not loud"],
  ["webhooks shop --log-level loud", "--log-level must be error, warn, info or debug, not loud"],
  ["completion fihs", "the shell must be bash, zsh or fish, not fihs; did you mean fish?"],
])("%s is rejected with what was meant", async (line, message) => {
  expect(await getFailure(line)).toBe(message);
});

test("a value from the environment is reported with its variable", async () => {
  vi.stubEnv("UNDERPASS_LOG_LEVEL", "loud");
  expect(await getFailure("http 3000")).toBe(
    "UNDERPASS_LOG_LEVEL must be error, warn, info or debug, not loud",
  );
  vi.unstubAllEnvs();
});
