/** What the agent says about the gates of its tunnel, and about the visits that they refuse. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
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
      /^Visitors {4}with a password\n {12}the password was not set by this command; to remove it:\n {12}--basic-auth=off\nServer /m,
    );
    second.press("q");
    await second.exit;
    const args = shared.getArgs("gates-screen", "--basic-auth", "off");
    await using third = await openScreen(args, { token: shared.token });
    await third.waitFor(/online, [^]*^Forwarding .*\nServer /m);
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
        .toMatch(/^\S+ Forwarding .*\n\S+ Visitors are served only with a password\n/);
      await shared.visit("gates-lines", "/");
      await expect
        .poll(() => first.stdout, WAIT_OPTIONS)
        .toContain(" 1 visit was refused by the service\n");
      expect(first.stdout).not.toContain("open sesame");
    }
    await using second = await run("gates-lines");
    await expect
      .poll(() => second.stdout, WAIT_OPTIONS)
      .toContain(
        " Visitors are served only with a password; the password was not set by this command; to remove it: --basic-auth=off\n",
      );
    const { body } = await shared.owner.get<Tunnel[]>("/tunnels");
    const { id } = body.find(({ subdomain }) => subdomain === "gates-lines")!;
    await shared.owner.delete(`/tunnels/${id}/auth`);
    await expect
      .poll(() => second.stdout, WAIT_OPTIONS)
      .toContain(" visitors need no password, sign-in or allowed address now\n");
  });

  test("that the tunnel has a policy of an earlier run, which --policy-file off removes", async () => {
    const policy = { actions: [{ kind: "deny", path_prefix: "/admin" }] };
    const file = join(await createTemporaryDir(), "policy.yml");
    await writeFile(file, JSON.stringify(policy));
    {
      await using first = await run("gates-policy", "--policy-file", file);
      await expect
        .poll(() => first.stdout, WAIT_OPTIONS)
        .toMatch(/^\S+ Forwarding .*\n\S+ Visitors are served only under a traffic policy\n/);
    }
    {
      await using second = await run("gates-policy");
      await expect
        .poll(() => second.stdout, WAIT_OPTIONS)
        .toContain(
          " Visitors are served only under a traffic policy; the traffic policy was not set by this command; to remove it: --policy-file=off\n",
        );
      expect((await shared.visit("gates-policy", "/admin")).status).toBe(403);
    }
    await using third = await run("gates-policy", "--policy-file", "off", "--json");
    await third.event("ready");
    expect((await shared.visit("gates-policy", "/admin")).status).toBe(200);
    expect(third.stdout).not.toContain(`"gates":`);
  });

  test("events", async () => {
    await using agent = await run("gates-json", "--json", ...PASSWORD);
    expect(await agent.event("gates")).toEqual({ event: "gates", gates: ["password"] });
    await shared.visit("gates-json", "/");
    expect(await agent.event("refused")).toEqual({ event: "refused", visits: 1 });
  });
});
