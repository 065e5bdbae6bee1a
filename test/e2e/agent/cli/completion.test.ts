/** `underpass completion`, in the shells that are installed. */
import { execFile, execFileSync } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { ROOT } from "../../../../self-host/build/build.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";

const run = promisify(execFile);
/** Has the command `underpass`, and some files. */
let dir: string;

beforeAll(async () => {
  dir = await createTemporaryDir();
  await symlink(join(ROOT, "agent/bin/launch.js"), join(dir, "underpass"));
  await writeFile(join(dir, "token file.bin"), "");
  await mkdir(join(dir, "tokens"));
  await writeFile(
    join(dir, "underpass.yml"),
    "tunnels:\n  web: { http: 3000 }\n  database: { tcp: 5432 }\n",
  );
});

function isInstalled(shell: string): boolean {
  try {
    execFileSync(shell, ["-c", "true"], { stdio: "ignore" });
    return true;
  } catch {
    console.log(`${shell} is not installed: its completion is not tested here`);
    return false;
  }
}

async function runShell(shell: string, script: string): Promise<string[]> {
  const env = { ...process.env, PATH: `${dir}${delimiter}${process.env["PATH"]}`, HOME: dir };
  const { stdout } = await run(shell, ["-c", script], { cwd: dir, env });
  return stdout.split("\n").filter((line) => line !== "");
}

const LINES: [line: string, expected: string[]][] = [
  ["underpass ht", ["http"]],
  ["underpass http 3000 --sub", ["--subdomain"]],
  ["underpass http --log-level ", ["error", "warn", "info", "debug"]],
  ["underpass vpn office r", ["remove"]],
  ["underpass vpn --server https://a.test office ", ["add", "devices", "remove"]],
];

test.each([
  ...LINES,
  // bash replaces what stands after the last `=` only.
  ["underpass http --log-level=de", ["debug"]] as const,
  ["underpass http --token-file tok", ["token file.bin", "tokens"]] as const,
  ["underpass http --token-file=tok", ["token file.bin", "tokens"]] as const,
  ["underpass vpn office --dir tok", ["tokens"]] as const,
  ["underpass start da", ["database"]] as const,
])("bash completes %j", async (line, expected) => {
  const script = `
    source <(underpass completion bash)
    COMP_LINE='${line}' COMP_POINT=${line.length}
    _underpass
    printf '%s\\n' "\${COMPREPLY[@]}"
    complete -p underpass > /dev/null`;
  expect((await runShell("bash", script)).sort()).toEqual([...expected].sort());
});

test.skipIf(!isInstalled("fish")).each(LINES)("fish completes %j", async (line, expected) => {
  const script = `underpass completion fish | source; complete -C '${line}'`;
  const words = (await runShell("fish", script)).map((found) => found.split("\t")[0]);
  expect(words.sort()).toEqual([...expected].sort());
});

test.skipIf(!isInstalled("zsh")).each(LINES)("zsh completes %j", async (line, expected) => {
  const words = line.split(" ").map((word) => `'${word}'`);
  const script = `
    compdef() { }; _describe() { print -l -- "\${(@P)2%%:*}" }; _files() { print files }
    source <(underpass completion zsh)
    words=(${words.join(" ")}); CURRENT=${words.length}
    _underpass`;
  expect((await runShell("zsh", script)).sort()).toEqual([...expected].sort());
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
