/** `underpass completion`, installed as it says, in the shells themselves. */
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { spawn } from "@lydell/node-pty";
import { beforeAll, describe, expect, test } from "vitest";
import { SHELLS } from "../../../../agent/commands/completion/scripts.ts";
import { ROOT } from "../../../../self-host/build/build.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import type { MintedToken } from "../../../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { reservePort } from "../../../harness/ports.ts";
import { getSocket, mintToken, startApi, type TestApi } from "../../../harness/server/api.ts";
import { runAgent, runToEnd } from "../../../harness/tunnel/agent.ts";

const run = promisify(execFile);
/** The home directory of the shells, which has the command `underpass` and some files. */
let home: string;
let env: Record<string, string | undefined>;

beforeAll(async () => {
  home = await createTemporaryDir();
  const PATH = `${home}${delimiter}${process.env["PATH"]}`;
  env = { ...process.env, PATH, HOME: home, XDG_CONFIG_HOME: undefined, TERM: "xterm" };
  await symlink(join(ROOT, "agent/bin/launch.js"), join(home, "underpass"));
  await writeFile(join(home, "token file.bin"), "");
  await mkdir(join(home, "tokens"));
  const entries = "tunnels:\n  web: { http: 3000 }\n  database: { tcp: 5432 }\n";
  await writeFile(join(home, "underpass.yml"), entries);
  await writeFile(join(home, "other file.yml"), "tunnels:\n  mail: { tcp: 25 }\n");
});

function isInstalled(shell: string): boolean {
  return spawnSync(shell, ["-c", "true"]).status === 0;
}

/** The text before the Tab key, and the words that the shell offers, without `--option=` at their beginning. */
const LINES: [line: string, expected: string[]][] = [
  ["underpass ht", ["http"]],
  ["underpass http 3000 --sub", ["--subdomain"]],
  ["underpass http --log-level ", ["debug", "error", "info", "warn"]],
  ["underpass http --log-level=de", ["debug"]],
  ["underpass http --host-header=", ["auto", "preserve", "rewrite"]],
  ["underpass vpn --server https://a.test office ", ["add", "devices", "remove"]],
  ["underpass http --token-file tok", ["token file.bin", "tokens"]],
  ["underpass http --token-file=tok", ["token file.bin", "tokens"]],
  ["underpass vpn office --dir tok", ["tokens"]],
  ["underpass http tok", ["token file.bin", "tokens"]],
  ["underpass http 3000 tok", []],
  ["underpass start ", ["database", "web"]],
  ["underpass start web ", ["database"]],
  ["underpass start --config other\\ file.yml ", ["mail"]],
];

/** Installs the completion with the command that `underpass completion` prints. */
async function installCompletion(shell: keyof typeof SHELLS): Promise<void> {
  await run(shell, ["-c", SHELLS[shell].install], { cwd: home, env });
}

/** @param output one word a line. zsh escapes spaces itself, and a directory may end with a slash. */
function toWords(output: string): string[] {
  const words = output.split("\n").map((line) => line.replace(/^--[a-z-]+=|\/$|\\(?= )/g, ""));
  return words.filter((word) => word !== "").sort();
}

/** The shells run these for the line `$line`, and print the words that they offer. */
const BASH = `
  source ~/.bashrc
  complete -p underpass > /dev/null || exit 1
  COMP_LINE=$line COMP_POINT=\${#line}
  _underpass
  printf '%s\n' "\${COMPREPLY[@]}"`;
const FISH = 'complete -C "$line"';

describe.each([
  ["bash", BASH],
  ["fish", FISH],
] as const)("%s", (shell, script) => {
  const isMissing = !isInstalled(shell);
  beforeAll(() => (isMissing ? undefined : installCompletion(shell)));

  test.for(LINES)("completes %j", async ([line, expected], { skip }) => {
    skip(isMissing, `${shell} is not installed`);
    const { stdout } = await run(shell, ["-c", script], { cwd: home, env: { ...env, line } });
    const withoutDescriptions = stdout.replace(/\t.*/g, "");
    expect(toWords(withoutDescriptions)).toEqual(expected);
  });
});

/** Its completion needs a terminal. One interactive shell completes each line, and records what is offered. */
const ZSH = `
  source ~/.zshrc
  compadd() {
    local -a found
    builtin compadd -A found "$@"
    [[ " $* " == *" -"[AOD]" "* ]] || offered+=("\${found[@]}")
    builtin compadd "$@"
  }
  complete-lines() {
    for line in ${LINES.map(([line]) => `'${line}'`).join(" ")}; do
      offered=() BUFFER=$line CURSOR=\${#line}
      zle list-choices
      print -rl -- "$line" "\${(@u)offered}" '' >> results
    done
    exit
  }
  zle -N complete-lines
  zle-line-init() { zle complete-lines }
  zle -N zle-line-init
  LISTMAX=1000`;

describe("zsh", () => {
  const isMissing = !isInstalled("zsh");
  const offered = new Map<string, string>();

  beforeAll(async () => {
    if (isMissing) return;
    await installCompletion("zsh");
    const directory = join(home, "interactive");
    await mkdir(directory);
    await writeFile(join(directory, ".zshrc"), ZSH);
    const shell = spawn("zsh", ["-d", "-i"], { cwd: home, env: { ...env, ZDOTDIR: directory } });
    await new Promise<void>((resolve) => shell.onExit(() => resolve()));
    const results = await readFile(join(home, "results"), "utf8");
    for (const result of results.split("\n\n")) {
      const [line = "", ...words] = result.split("\n");
      offered.set(line, words.join("\n"));
    }
  });

  test.for(LINES)("completes %j", ([line, expected], { skip }) => {
    skip(isMissing, "zsh is not installed");
    expect(toWords(offered.get(line) ?? "no result")).toEqual(expected);
  });
});

describe("names on the server", () => {
  let api: TestApi;
  let token: MintedToken;
  let tunnel: Tunnel;
  beforeAll(async () => {
    api = await startApi();
    const owner = await api.owner();
    token = await mintToken(owner);
    await mintToken(owner, { name: "two words" });
    await mintToken(owner, { name: "$(touch>x)" });
    tunnel = (await owner.post<Tunnel>("/tunnels", { localPort: 3000, subdomain: "kiosk" })).body;
    const tcp = { protocol: "tcp", port: 5432, private: "true", subdomain: "dataset" };
    const agent = getSocket(await api.connectAgent(token.wireBytes, tcp));
    return async () => {
      agent.close();
      await api.stop();
    };
  });

  const complete = async (words: string[], server = api.server.url): Promise<string[]> => {
    const options = ["--server", server, "--token-file", "TOKEN"];
    const line = [...words.slice(0, -1), ...options, words.at(-1)!];
    const { code, stdout, stderr } = await runToEnd(["__complete", ...line], {
      token: Buffer.from(token.wireBytes, "base64"),
    });
    expect([code, stderr]).toEqual([0, ""]);
    return toWords(stdout.replace(/\t.*/g, ""));
  };

  test("are offered by commands that take a tunnel", async () => {
    expect(await complete(["tunnels", "stop", ""])).toEqual(["dataset", "kiosk"]);
    expect(await complete(["tunnels", "stop", "kiosk", ""])).toEqual(["dataset"]);
    expect(await complete(["connect", ""])).toEqual(["dataset"]);
    expect(await complete(["logs", "ki"])).toEqual(["kiosk"]);
  });

  test("are offered by commands that take a token: a nonce where a shell does not take the name as one literal word", async () => {
    const tokens = await complete(["tokens", "revoke", ""]);
    expect(tokens).toContain(token.name);
    expect(tokens).toHaveLength(3);
    for (const word of tokens) if (word !== token.name) expect(word).toMatch(/^[\da-f]{32}$/);
  });

  test("are left out when a shell would run them", async () => {
    const subdomains = ["web", "$(touch>x)", "a;b", "`id`", "-n", "a b"];
    const hostile = createHttpServer((_, response) =>
      response.end(JSON.stringify(subdomains.map((subdomain) => ({ ...tunnel, subdomain })))),
    ).listen(0, "127.0.0.1");
    await once(hostile, "listening");
    const { port } = hostile.address() as AddressInfo;
    expect(await complete(["tunnels", "stop", ""], `http://127.0.0.1:${port}`)).toEqual(["web"]);
    hostile.close();
  });

  test("are left out when the server can't be reached, or does not accept the token", async () => {
    const unreachable = `http://127.0.0.1:${await reservePort()}`;
    expect(await complete(["tunnels", "stop", ""], unreachable)).toEqual([]);
    const { code, stdout, stderr } = await runToEnd(
      ["__complete", "tunnels", "stop", "--server", api.server.url, ""],
      {},
    );
    expect([code, stdout, stderr]).toEqual([0, "", ""]);
  });

  test("are left out when the server does not answer soon", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    expect(await complete(["tunnels", "stop", ""], `http://127.0.0.1:${port}`)).toEqual([]);
    silent.close();
  });
});

test("without an argument it says how to install completion for the user's shell", async () => {
  await using zsh = await runAgent(["completion"], { env: { SHELL: "/usr/bin/zsh" } });
  expect(await zsh.exit).toBe(0);
  expect(zsh.stdout).toContain("source <(underpass completion zsh)");
  expect(zsh.stdout).not.toContain("bash");
  await using other = await runAgent(["completion"], { env: { SHELL: "/bin/other" } });
  await other.exit;
  for (const name of ["bash", "zsh", "fish"]) expect(other.stdout).toContain(`For ${name},`);
});
