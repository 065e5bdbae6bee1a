/** `underpass open`, `version` and `help`, as processes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, expect, test, vi } from "vitest";
import { SERVICE_VERSION } from "../../../../protocol/version.ts";
import { createBrowserStub } from "../../../harness/agent/browser-stub.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { AGENT_COMMAND, runAgent } from "../../../harness/tunnel/agent.ts";

const ESCAPE = "\u001b[";

describe.skipIf(process.platform !== "linux")("underpass open", () => {
  async function open(address: string, env: Record<string, string>) {
    const browser = await createBrowserStub();
    await using agent = await runAgent(["open", "--server", address], {
      env: { ...browser.env, ...env },
    });
    expect(await agent.exit).toBe(0);
    return { stdout: agent.stdout, stderr: agent.stderr, readOpened: browser.readOpened };
  }

  test("prints the dashboard's address, and opens it in the browser", async () => {
    const { stdout, readOpened } = await open("https://a.test", { DISPLAY: ":0" });
    expect(stdout).toBe("https://a.test/\n");
    await vi.waitUntil(async () => (await readOpened()) === "https://a.test/", WAIT_OPTIONS);
  });

  test.each<Record<string, string>>([
    {},
    { DISPLAY: ":10", SSH_CONNECTION: "203.0.113.7 1 203.0.113.8 22" },
  ])("only prints it where no person would see the browser (%j)", async (env) => {
    const { stdout, stderr, readOpened } = await open("https://a.test", env);
    expect([stdout, await readOpened()]).toEqual(["https://a.test/\n", ""]);
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
  ])("%j is printed without colors into a pipe", async (args, expected) => {
    await using agent = await runAgent(args, { env: { FORCE_COLOR: "", NO_COLOR: "" } });
    expect(await agent.exit).toBe(0);
    expect(agent.stdout).toContain(expected);
    expect(agent.stdout).not.toContain(ESCAPE);
  });

  test("has colors with FORCE_COLOR", async () => {
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
