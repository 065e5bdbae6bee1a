import { runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { SIGN_IN_HEADER, SIGN_IN_TICKET_PATH } from "../../../../access/identity.ts";
import { EDGE_VERDICT_HEADER, formatEdgeVerdict } from "../../../../access/edge-verdict.ts";
import { readPolicyUpdate, newVersion, runVisit } from "../../../harness/workerd/gated-tunnel.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";

function publish({ id, stub }: LiveTunnel, emails: string[] | null): Promise<void> {
  const identityGate = emails && { tunnelId: id, domains: [], emails };
  const version = newVersion();
  return stub.publishAccessSettings({
    version,
    realm: "shop",
    basicAuth: null,
    policy: null,
    identityGate,
  });
}

test("an identity gate applies from the next request on, after hibernation, and until it is removed", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await publish(tunnel, ["ann@example.com"]);
  for (const path of ["/", SIGN_IN_TICKET_PATH]) {
    const { code, response } = await runVisit(tunnel, agent, path);
    const step = path === "/" ? "start" : "finish";
    expect([code, response.headers.get(SIGN_IN_HEADER)]).toEqual(["unauthorized", step]);
    await tunnel.sleep();
  }
  await publish(tunnel, null);
  expect((await runVisit(tunnel, agent, SIGN_IN_TICKET_PATH)).code).toBe("passed");
});

test("a request that the edge admitted by outdated lists is authorized again", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await publish(tunnel, []);
  const gates = readPolicyUpdate((await runVisit(tunnel, agent, "/")).response)!;
  const headers = { [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) };
  expect((await runVisit(tunnel, agent, "/", { headers })).code).toBe("passed");
  await publish(tunnel, ["ann@example.com"]);
  expect((await runVisit(tunnel, agent, "/", { headers })).code).toBe("unauthorized");
});

test("a visitor pass does not reach the agent, with or without a gate", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  const headers = { cookie: "a=1; underpass-visitor=x; b=2" };
  const { received } = await runVisit(tunnel, agent, "/", { headers });
  expect(received!.pairs[received!.pairs.indexOf("cookie") + 1]).toBe("a=1; b=2");
  const alone = await runVisit(tunnel, agent, "/", { headers: { cookie: "underpass-visitor=x" } });
  expect(alone.received!.pairs).not.toContain("cookie");
});

test("a ticket can be used once, also through hibernation, and is deleted after it has expired", async () => {
  const tunnel = new LiveTunnel();
  const endsAtMs = Date.now() + 60_000;
  expect(await tunnel.stub.consumeSignInTicket("one", endsAtMs)).toBe(true);
  await tunnel.sleep();
  const again = await Promise.all(
    Array.from({ length: 20 }, () => tunnel.stub.consumeSignInTicket("one", endsAtMs)),
  );
  expect(again).toEqual(Array(20).fill(false));
  expect(await tunnel.stub.consumeSignInTicket("two", Date.now() - 1)).toBe(true);
  expect(await tunnel.stub.consumeSignInTicket("three", endsAtMs)).toBe(true);
  const stored = await runInDurableObject(tunnel.stub, (_, { storage }) =>
    Array.from(storage.kv.list({ prefix: "spent-ticket:" }), ([key]) => key),
  );
  expect(stored).toEqual(["spent-ticket:one", "spent-ticket:three"]);
  await tunnel.stub.retire();
  expect(await tunnel.stub.consumeSignInTicket("four", endsAtMs)).toBe(false);
});
