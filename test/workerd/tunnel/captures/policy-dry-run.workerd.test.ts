import { expect, test } from "vitest";
import type { PolicyAction } from "../../../../protocol/schemas/access/policies.ts";
import { publish, runVisit } from "../../../harness/workerd/gated-tunnel.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";

const DENY: PolicyAction = { kind: "deny", path_prefix: "/admin" };
const TOKEN: PolicyAction = { kind: "jwt_validation" };
const LIMIT_REQUESTS = 1_000;

const dryRun = (tunnel: LiveTunnel, ...actions: PolicyAction[]) =>
  tunnel.stub.dryRunPolicy({ policy: { actions }, limit: LIMIT_REQUESTS });

test("a dry run knows after hibernation and after a change which requests the policy refused", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await publish(tunnel, [DENY]);
  expect((await runVisit(tunnel, agent, "/admin")).code).toBe("forbidden");
  expect((await runVisit(tunnel, agent, "/")).code).toBe("passed");
  await tunnel.sleep();
  expect(await dryRun(tunnel)).toMatchObject({ evaluated: 2, allowed: 2, changed: 1, unknown: 0 });
  await publish(tunnel, []);
  await tunnel.sleep();
  expect(await dryRun(tunnel)).toMatchObject({ evaluated: 2, allowed: 2, changed: 1, unknown: 0 });
});

test("a dry run reads the headers of requests that are stored in pages and of an open one", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await runVisit(tunnel, agent, "/without");
  await runVisit(tunnel, agent, "/with", { headers: { authorization: "Bearer a.b.c" } });
  const open = tunnel.visit("/open");
  const { stream } = await agent.nextRequest();
  expect(await dryRun(tunnel, TOKEN)).toMatchObject({
    evaluated: 3,
    refused: 2,
    unknown: 1,
    examples: [{ path: "/open", status: null }, { path: "/without" }, { path: "/with" }],
  });
  agent.respond(stream, 200, [], "done");
  await (await open).arrayBuffer();
});

test("a dry run of a tunnel that was deleted has no requests", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await runVisit(tunnel, agent, "/");
  await tunnel.stub.retire();
  expect(await dryRun(tunnel, DENY)).toMatchObject({ evaluated: 0, since: null });
});
