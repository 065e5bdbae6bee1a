/** underpass.yml: the values that it may have, and the sentence, line and column of each mistake. */
import { basename, dirname, join } from "node:path";
import type { HttpTunnelDefinition } from "../../../../agent/tunnel/http-definition.ts";
import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../../agent/config/parse-config.ts";

const parse = (lines: string[], environment = {}) =>
  parseConfig(lines.join("\n"), "/project/underpass.yml", environment);

/** The problems of a file, without its name: `line:column: message`. */
async function findProblems(lines: string[], environment = {}): Promise<string[]> {
  try {
    await parse(lines, environment);
  } catch (error) {
    return (error as Error).message.replaceAll("/project/underpass.yml:", "").split("\n");
  }
  return [];
}

/** A file with one tunnel `web`, whose entry continues with these lines from line 5, column 5. */
const web = (...lines: string[]) => [
  "version: 1",
  "tunnels:",
  "  web:",
  "    local: 3000",
  ...lines.map((line) => `    ${line}`),
];

test("off removes the policy of an earlier run, and is not a path; ./off is one", async () => {
  const {
    tunnels: [entry],
  } = await parse(web("policy: off", "basic_auth: off"));
  expect(entry?.definition).toMatchObject({ gates: { policy: null, basicAuth: null } });
  expect(await findProblems(web("policy: ./off"))).toEqual([
    expect.stringMatching(/^5:13: can't read policy \/project\/off: /),
  ]);
});

describe("a mistake is reported with its line and column:", () => {
  test.each<[string, string[], string[]]>([
    [
      "an address that can't be listened at",
      web("inspect: nowhere"),
      ["5:14: inspect must be off or an address such as 127.0.0.1:4040, not nowhere"],
    ],
    [
      "an unknown option",
      web("subdomian: x"),
      ["5:5: unknown key subdomian; did you mean subdomain?"],
    ],
    [
      "an option by its name on the command line",
      web("policy_file: policy.yml"),
      ["5:5: unknown key policy_file; did you mean policy?"],
    ],
    [
      "an unknown key of the file",
      ["version: 1", "tunels: {}"],
      ["1:1: tunnels is missing", "2:1: unknown key tunels; did you mean tunnels?"],
    ],
    [
      "an option of the other protocol",
      web("remote_port: 5432"),
      ["5:5: remote_port is an option of tunnels with protocol: tcp, not of http"],
    ],
    ["an unknown protocol", web("protocol: udp"), ["5:15: protocol must be http or tcp"]],
    [
      "an option that must be true or false",
      web("insecure_upstream: yes"),
      ["5:24: insecure_upstream must be true or false"],
    ],
    ["an option without a value", web("subdomain:"), ["5:15: subdomain has no value"]],
    [
      "a value that the command line refuses too",
      web("ttl: soon"),
      ["5:10: ttl must be a time such as 90s, 15m, 2h or 1d, not soon"],
    ],
    [
      "an entry of a list",
      web("protocol: tcp", "allow: [10.0.0.0/8, nowhere]"),
      ["6:12: allow must be an address block such as 203.0.113.0/24, not nowhere"],
    ],
    [
      "a port of a private tunnel",
      web("protocol: tcp", "private: true", "remote_port: 7000"),
      ["7:18: a tunnel with private has no public port; leave out remote_port"],
    ],
    [
      "addresses beside the word that removes them",
      web("protocol: tcp", "allow: [off, 10.0.0.0/8]"),
      ["6:12: off of allow removes the whole list; leave out the other addresses"],
    ],
    [
      "two options that exclude each other",
      web("subdomain: a", "url: b.example"),
      ["5:16: use url or subdomain, not both"],
    ],
    [
      "a local server that is none",
      ["version: 1", "tunnels:", "  web: {local: a/b/c}"],
      ["3:16: a/b/c is not a port, host:port, http(s) URL, unix:path, file or directory"],
    ],
    [
      "an empty local server, which is not the current directory",
      [
        "version: 1",
        "tunnels:",
        "  web: {local: '${APP_PORT:-}'}",
        '  db: {local: "", protocol: tcp}',
      ],
      ["3:16: the local port is empty", "4:15: the local port is empty"],
    ],
    ["an empty path", web('policy: ""'), ["5:13: the value of policy is empty"]],
    [
      "a missing local server",
      ["version: 1", "tunnels:", "  web: {subdomain: a}"],
      ["3:3: local is missing"],
    ],
    [
      "a tunnel that is no mapping",
      ["version: 1", "tunnels:", "  web: 3000"],
      ["3:8: web must have options, each on a line of its own"],
    ],
    [
      "a name with spaces",
      ["version: 1", "tunnels:", "  my web: {local: 1}"],
      ["3:3: a tunnel's name has up to 63 letters, digits, dots, hyphens and underscores"],
    ],
    ["another version", ["version: 2", "tunnels: {web: {local: 1}}"], ["1:10: version must be 1"]],
    [
      "no tunnels",
      ["version: 1", "tunnels: {}"],
      ["2:1: tunnels must have 1 to 256 entries, not 0"],
    ],
    ["an empty file", [""], ["1:1: the file must have version and tunnels"]],
    ["a list", ["- web"], ["1:1: the file must have version and tunnels"]],
    [
      "a tab",
      ["version: 1", "tunnels:", "\tweb: 1"],
      ["3:1: lines must be indented with spaces, not with tabs"],
    ],
    ["a key that is there twice", web("ttl: 1", "ttl: 2"), ["6:5: this key is already used above"]],
    [
      "an alias without an anchor",
      web("ttl: *other"),
      ["1:1: the file has an alias without an anchor, or too many aliases"],
    ],
    [
      "an open quote",
      web('subdomain: "x'),
      ["5:18: a quote, a bracket, a comma or a colon is missing here"],
    ],
    [
      "an open bracket",
      ["version: 1", "tunnels: {web: {local: 1},"],
      ["2:27: a bracket that is opened above is not closed before this"],
    ],
    [
      "a line that is indented more than the one above",
      ["version: 1", "tunnels:", "  web:", "   local: 1", "    ttl: 1"],
      ["4:11: the line after this value is indented wrongly, or the value needs quotes"],
    ],
  ])("%s", async (_, lines, problems) => {
    expect(await findProblems(lines)).toEqual(problems);
  });

  test("all of one tunnel, but not what only follows from them", async () => {
    const lines = ["version: 1", "tunnels:", "  web:", "    local: not a port"];
    const more = ["    ttl: soon", "    url: ftp://x", "    pool: true"];
    expect(await findProblems([...lines, ...more])).toEqual([
      expect.stringMatching(/^4:12: not a port /),
      expect.stringMatching(/^5:10: ttl must be a time/),
      expect.stringMatching(/^6:10: url must be a URL/),
    ]);
  });

  test("the same name or port in two tunnels", async () => {
    const lines = [
      "version: 1",
      "tunnels:",
      "  a: {local: 1, subdomain: shop}",
      "  b: {local: 2, subdomain: shop}",
      "  c: {local: 3, protocol: tcp, remote_port: 7000}",
      "  d: {local: 4, protocol: tcp, remote_port: 7000}",
      "  e: {local: 5, name: shop}",
      "  f: {local: 6, subdomain: api, name: api}",
    ];
    expect(await findProblems(lines)).toEqual([
      "4:28: subdomain shop is already used by the tunnel a",
      "6:45: remote_port 7000 is already used by the tunnel c",
      "7:23: name shop is already used by the tunnel a",
    ]);
  });

  test("the same name in two tunnels of one project", async () => {
    const lines = [
      "version: 1",
      "tunnels:",
      "  a: {local: 1, subdomain: shop}",
      "  b: {local: 2, subdomain: shop, project: staging}",
      "  c: {local: 3, subdomain: shop, project: staging}",
      "  d: {local: 4, subdomain: shop, project: default}",
    ];
    expect(await findProblems(lines)).toEqual([
      "5:28: subdomain shop is already used by the tunnel b",
      "6:28: subdomain shop is already used by the tunnel a",
    ]);
  });

  test("the same name in two tunnels of which only one joins a pool", async () => {
    const lines = [
      "version: 1",
      "tunnels:",
      "  a: {local: 1, name: shop, pool: true}",
      "  b: {local: 2, name: shop, pool: true}",
      "  c: {local: 3, name: shop}",
    ];
    expect(await findProblems(lines)).toEqual(["5:23: name shop is already used by the tunnel a"]);
  });

  test("ten problems are shown, and how many more there are", async () => {
    const names = Array.from({ length: 13 }, (_, n) => `unknown${n}: 1`);
    const problems = await findProblems(web(...names));
    expect(problems).toHaveLength(11);
    expect(problems.at(-1)).toBe("and 3 more problems");
  });
});

describe("a variable of the environment", () => {
  const getHeader = async (text: string, environment = {}) => {
    const {
      tunnels: [entry],
    } = await parse(web(`headers: [${text}]`), environment);
    return (entry!.definition as HttpTunnelDefinition).originOptions?.header?.[0]?.[1];
  };

  test.each([
    ['"X: ${NAME}"', { NAME: "shop" }, "shop"],
    ["'X: ${NAME}-${STAGE}'", { NAME: "shop", STAGE: "dev" }, "shop-dev"],
    ['"X: ${NAME:-default}"', {}, "default"],
    ['"X: ${NAME:-default}"', { NAME: "" }, "default"],
    ['"X: ${NAME:-default}"', { NAME: "shop" }, "shop"],
    ['"X: $${NAME}"', { NAME: "shop" }, "${NAME}"],
    ['"X: $NAME"', { NAME: "shop" }, "$NAME"],
    ['"X: ${NAME}"', { NAME: "${OTHER}", OTHER: "x" }, "${OTHER}"],
  ])("%s is replaced", async (text, environment, expected) => {
    expect(await getHeader(text, environment)).toBe(expected);
  });

  test("can be a number, or true or false", async () => {
    const {
      tunnels: [entry],
    } = await parse(web("insecure_upstream: ${INSECURE}", "ttl: ${TTL}"), {
      INSECURE: "true",
      TTL: "60",
    });
    expect(entry?.definition).toMatchObject({
      originOptions: { "insecure-upstream": true },
      settings: { ttl: 60 },
    });
  });

  test("that is not set is reported where it is used", async () => {
    expect(await findProblems(web('subdomain: "a-${NAME}"'))).toEqual([
      "5:19: the environment variable NAME is not set; set it, or write ${NAME:-default}",
    ]);
    expect(await findProblems(web('subdomain: "${NAME}"'), { NAME: "" })).toEqual([
      "5:16: the value of subdomain is empty",
    ]);
    expect(await findProblems(web("subdomain: ${my name}"))).toEqual([
      "5:16: ${ must be followed by a variable's name and }; write $${ for the text ${",
    ]);
  });

  test("is never replaced in a key", async () => {
    expect((await findProblems(web("${NAME}: x"), { NAME: "subdomain" }))[0]).toMatch(
      /^5:5: unknown key/,
    );
  });
});

test("numbers stay as they are written", async () => {
  const {
    tunnels: [entry],
  } = await parse(web("subdomain: 007"));
  expect(entry?.definition.settings.subdomain).toBe("007");
});

test("tunnels can share options with an anchor", async () => {
  const { tunnels } = await parse([
    ...web("ttl: 60").with(2, "  web: &web"),
    "  api: {<<: *web, local: 4000}",
  ]);
  expect(tunnels.map(({ definition }) => definition.settings.ttl)).toEqual([60, 60]);
});

test("the path of shared files starts at the directory of the file", async () => {
  const lines = ["version: 1", "tunnels:", "  site: {local: ./agent}"];
  const path = join(import.meta.dirname, "../../../../underpass.yml");
  const {
    tunnels: [entry],
  } = await parseConfig(lines.join("\n"), path, {});
  expect(entry?.definition.target).toMatchObject({ origin: join(dirname(path), "agent") });
  const plain = ["version: 1", "tunnels:", "  site: {local: agent/bin}"];
  const {
    tunnels: [elsewhere],
  } = await parseConfig(plain.join("\n"), path, {});
  expect(elsewhere?.definition.target).toMatchObject({ origin: join(dirname(path), "agent/bin") });
  expect(await findProblems(["version: 1", "tunnels:", "  site: {local: ./nowhere}"])).toEqual([
    "3:17: there is no file or directory /project/nowhere",
  ]);
});

test("the path of a Unix socket starts at the directory of the file", async () => {
  const { tunnels } = await parse([
    ...["version: 1", "tunnels:", "  web: {local: unix:./app.sock}"],
    "  db: {local: 'unix:/run/db.sock', protocol: tcp}",
    "  old: {local: 'unix:db.sock', protocol: tcp}",
  ]);
  expect(tunnels.map(({ definition }) => definition.target.socketPath)).toEqual([
    "/project/app.sock",
    "/run/db.sock",
    "/project/db.sock",
  ]);
  const long = `unix:/${"a".repeat(200)}`;
  const problems = await findProblems(["version: 1", "tunnels:", `  web: {local: '${long}'}`]);
  expect(problems).toEqual([expect.stringMatching(/^3:16: the path of a Unix socket has at most/)]);
});

test("a problem inside of a policy's file is reported at the key that names the file", async () => {
  const path = join(import.meta.dirname, "underpass.yml");
  const lines = web(`policy: ${basename(import.meta.filename)}`);
  await expect(parseConfig(lines.join("\n"), path, {})).rejects.toThrow(/underpass\.yml:5:13: /);
});

test("paths start at the directory of the file", async () => {
  const lines = [`token_file: ${basename(import.meta.filename)}`, ...web()];
  const path = join(import.meta.dirname, "underpass.yml");
  const { tokenFile } = await parseConfig(lines.join("\n"), path, {});
  expect(tokenFile).toBe(import.meta.filename);
});

describe("the access to the server", () => {
  test.each<[string, string | RegExp]>([
    [
      "server: ftp://x",
      "1:9: ftp://x is not a server address; a URL of a server must begin with https:// or http://",
    ],
    [
      "server: http://localhost:22000/path",
      "1:9: the server address http://localhost:22000/path must not have a path, a query or a fragment; use http://localhost:22000",
    ],
    ["token_file: nowhere", /^1:13: can't read the token file: .*\/project\/nowhere/],
    ["token_file: ''", "1:13: the value of token_file is empty"],
    ["ca_file: nowhere", /^1:10: can't read the CA file: .*\/project\/nowhere/],
  ])("with a mistake (%s) is reported with its line and column", async (line, problem) => {
    expect(await findProblems([line, ...web()])).toEqual([
      typeof problem === "string" ? problem : expect.stringMatching(problem),
    ]);
  });

  test("is not checked where the command line replaces it", async () => {
    const lines = ["server: ftp://x", "token_file: nowhere", "ca_file: nowhere", ...web()];
    const overrides = { server: "http://localhost", "token-file": "token", "ca-file": "ca.pem" };
    const text = lines.join("\n");
    const { tunnels } = await parseConfig(text, "/project/underpass.yml", {}, overrides);
    expect(tunnels).toHaveLength(1);
  });
});
