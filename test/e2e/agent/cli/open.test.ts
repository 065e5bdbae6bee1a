/** `underpass open`, `version` and `help`, as processes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test, vi } from "vitest";
import { SERVICE_VERSION } from "../../../../protocol/version.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { AGENT_COMMAND, runAgent } from "../../../harness/tunnel/agent.ts";

const ESCAPE = "\u001b[";

describe.skipIf(process.platform !== "linux")("underpass open", () => {
  /** Runs the command with a program `xdg-open` that writes its arguments to a file. */
  async function open(address: string, env: Record<string, string>) {
    const dir = await createTemporaryDir();
    const record = join(dir, "opened");
    await writeFile(join(dir, "xdg-open"), `#!/bin/sh\nprintf '%s' "$*" > ${record}\n`);
    await chmod(join(dir, "xdg-open"), 0o755);
    const path = `${dir}${delimiter}${process.env["PATH"]}`;
    const none = { DISPLAY: "", WAYLAND_DISPLAY: "", SSH_CONNECTION: "", SSH_TTY: "" };
    await using agent = await runAgent(["open", "--server", address], {
      env: { ...none, PATH: path, ...env },
    });
    expect(await agent.exit).toBe(0);
    const readRecord = () => readFile(record, "utf8").catch(() => "");
    return { stdout: agent.stdout, stderr: agent.stderr, readRecord };
  }

  test("prints the dashboard's address, and opens it in the browser", async () => {
    const { stdout, readRecord } = await open("https://a.test", { DISPLAY: ":0" });
    expect(stdout).toBe("https://a.test/\n");
    await vi.waitUntil(async () => (await readRecord()) === "https://a.test/", WAIT_OPTIONS);
  });

  test.each<Record<string, string>>([
    {},
    { DISPLAY: ":10", SSH_CONNECTION: "203.0.113.7 1 203.0.113.8 22" },
  ])("only prints it where no person would see the browser (%j)", async (env) => {
    const { stdout, stderr, readRecord } = await open("https://a.test", env);
    expect([stdout, await readRecord()]).toEqual(["https://a.test/\n", ""]);
    expect(stderr).toContain("open the address in yours");
  });
});

test("underpass version --json prints what a bug report needs", async () => {
  await using agent = await runAgent(["version", "--json"]);
  expect(await agent.exit).toBe(0);
  expect(JSON.parse(agent.stdout)).toEqual({
    version: SERVICE_VERSION,
    node: process.versions.node,
    platform: `${process.platform}-${process.arch}`,
  });
});

describe("help", () => {
  test.each([
    [["help", "vpn", "add"], "underpass vpn <network> add <device>"],
    [["vpn", "office", "add", "--help"], "underpass vpn <network> add <device>"],
    [["http", "--help"], "--subdomain NAME"],
    [["http", "3000", "-h"], "--subdomain NAME"],
    [["--help"], "underpass help <command>"],
  ])("%j is printed without colours into a pipe", async (args, expected) => {
    await using agent = await runAgent(args, { env: { FORCE_COLOR: "", NO_COLOR: "" } });
    expect(await agent.exit).toBe(0);
    expect(agent.stdout).toContain(expected);
    expect(agent.stdout).not.toContain(ESCAPE);
  });

  test("has colours with FORCE_COLOR", async () => {
    await using agent = await runAgent(["help"], { env: { FORCE_COLOR: "1", NO_COLOR: "" } });
    await agent.exit;
    expect(agent.stdout).toContain(ESCAPE);
  });

  test("about an unknown command is bad usage, with what was meant and what to do next", async () => {
    await using agent = await runAgent(["help", "htpt"]);
    expect(await agent.exit).toBe(2);
    expect(agent.stderr).toBe(
      "underpass: unknown command: htpt; did you mean http?\nRun `underpass help` for all commands.\n",
    );
  });
});

test("a reader that ends first, such as head, causes no error", async () => {
  const [node, ...command] = AGENT_COMMAND;
  const child = spawn(node!, [...command, "help"], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect([code, errors]).toEqual([0, ""]);
});
