/** What the agent says about the gates of its tunnel, and about the visits that they refuse. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSharedServer, type SharedServer } from "../../../harness/agent/shared-server.ts";
import { openScreen } from "../../../harness/screen.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";

const PASSWORD = ["--basic-auth", "ann:open sesame 1"];

let shared: SharedServer;
beforeAll(async () => {
  shared = await startSharedServer((_request, response) => void response.end("ok"));
});
afterAll(() => shared?.[Symbol.asyncDispose]());

describe("the screen", () => {
  test("shows the password, counts refused visits, and says later how to remove what another run has set", async () => {
    {
      const args = shared.getArgs("gates-screen", ...PASSWORD);
      await using first = await openScreen(args, { token: shared.token });
      await first.waitFor(/^Forwarding .*\nVisitors {4}with a password\nServer /m);
      expect((await shared.visit("gates-screen", "/")).status).toBe(401);
      await first.waitFor(/^Requests {4}0\nRefused {5}1$/m);
      first.press("q");
      await first.exit;
    }
    await using second = await shared.share("gates-screen");
    await second.waitFor(
      /^Visitors {4}with a password\n {12}the password was not set by this command; remove it through the API:\n {12}DELETE \/tunnels\/[0-9a-f-]{36}\/auth\nServer /m,
    );
    const [, route = ""] = /DELETE (\S+)/.exec(second.rows.join("\n")) ?? [];
    await shared.owner.delete(route);
    await second.waitFor(/^Forwarding .*\nServer /m);
    expect((await shared.visit("gates-screen", "/")).status).toBe(200);
  });

  test("of 40 columns and 12 rows says so in one row", async () => {
    const options = { token: shared.token, width: 40, height: 12 };
    await using screen = await openScreen(shared.getArgs("gates-40", ...PASSWORD), options);
    await screen.waitFor(/^Visitors with a password$/m);
    await shared.visit("gates-40", "/");
    await screen.waitFor(/^Requests 0\nRefused 1$/m);
  });
});

describe("without a screen the agent prints", () => {
  const run = (name: string, ...more: string[]) =>
    runAgent(shared.getArgs(name, ...more), { token: shared.token });

  test("lines", async () => {
    {
      await using first = await run("gates-lines", ...PASSWORD);
      await expect
        .poll(() => first.stdout, WAIT_OPTIONS)
        .toMatch(/^Forwarding .*\nVisitors are served only with a password\n/);
      await shared.visit("gates-lines", "/");
      await expect
        .poll(() => first.stdout, WAIT_OPTIONS)
        .toContain("\n1 visit was refused by the service\n");
      expect(first.stdout).not.toContain("open sesame");
    }
    await using second = await run("gates-lines");
    await expect
      .poll(() => second.stdout, WAIT_OPTIONS)
      .toMatch(
        /\nVisitors are served only with a password; the password was not set by this command; remove it through the API: DELETE \/tunnels\/[0-9a-f-]{36}\/auth\n/,
      );
    const [, route = ""] = /DELETE (\S+)/.exec(second.stdout) ?? [];
    await shared.owner.delete(route);
    await expect
      .poll(() => second.stdout, WAIT_OPTIONS)
      .toContain("\nvisitors need no password, sign-in or allowed address now\n");
  });

  test("events", async () => {
    await using agent = await run("gates-json", "--json", ...PASSWORD);
    expect(await agent.event("gates")).toEqual({ event: "gates", gates: ["password"] });
    await shared.visit("gates-json", "/");
    expect(await agent.event("refused")).toEqual({ event: "refused", visits: 1 });
  });
});
