import { runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { SIGN_IN_HEADER, TICKET_PATH } from "../../../../access/identity.ts";
import { EDGE_VERDICT_HEADER, formatEdgeVerdict } from "../../../../access/edge-verdict.ts";
import { gatesIn, newVersion, outcomeOf } from "../../../harness/workerd/gated-tunnel.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";

function publish({ id, stub }: LiveTunnel, emails: string[] | null): Promise<void> {
  const identityGate = emails && { tunnelId: id, domains: [], emails };
  const version = newVersion();
  return stub.publishSettings({
    version,
    realm: "shop",
    basicAuth: null,
    policy: null,
    identityGate,
  });
}

test("an identity gate holds from the next request on, through sleep, and until it is removed", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await publish(tunnel, ["ann@example.com"]);
  for (const path of ["/", TICKET_PATH]) {
    const { code, answer } = await outcomeOf(tunnel, agent, path);
    const step = path === "/" ? "start" : "finish";
    expect([code, answer.headers.get(SIGN_IN_HEADER)]).toEqual(["unauthorized", step]);
    await tunnel.sleep();
  }
  await publish(tunnel, null);
  expect((await outcomeOf(tunnel, agent, TICKET_PATH)).code).toBe("passed");
});

test("who the edge let through by lists that have changed since is judged anew", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await publish(tunnel, []);
  const gates = gatesIn((await outcomeOf(tunnel, agent, "/")).answer)!;
  const headers = { [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) };
  expect((await outcomeOf(tunnel, agent, "/", { headers })).code).toBe("passed");
  await publish(tunnel, ["ann@example.com"]);
  expect((await outcomeOf(tunnel, agent, "/", { headers })).code).toBe("unauthorized");
});

test("a pass does not reach the agent, whether there is a gate or not", async () => {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  const headers = { cookie: "a=1; underpass-visitor=x; b=2" };
  const { asked } = await outcomeOf(tunnel, agent, "/", { headers });
  expect(asked!.pairs[asked!.pairs.indexOf("cookie") + 1]).toBe("a=1; b=2");
  const alone = await outcomeOf(tunnel, agent, "/", { headers: { cookie: "underpass-visitor=x" } });
  expect(alone.asked!.pairs).not.toContain("cookie");
});

test("a ticket is spent once, also when the object slept in between, and forgotten when it has ended", async () => {
  const tunnel = new LiveTunnel();
  const endsAtMs = Date.now() + 60_000;
  expect(await tunnel.stub.consumeTicket("one", endsAtMs)).toBe(true);
  await tunnel.sleep();
  const again = await Promise.all(
    Array.from({ length: 20 }, () => tunnel.stub.consumeTicket("one", endsAtMs)),
  );
  expect(again).toEqual(Array(20).fill(false));
  expect(await tunnel.stub.consumeTicket("two", Date.now() - 1)).toBe(true);
  expect(await tunnel.stub.consumeTicket("three", endsAtMs)).toBe(true);
  const kept = await runInDurableObject(tunnel.stub, (_, { storage }) =>
    Array.from(storage.kv.list({ prefix: "spent-ticket:" }), ([key]) => key),
  );
  expect(kept).toEqual(["spent-ticket:one", "spent-ticket:three"]);
  await tunnel.stub.retire();
  expect(await tunnel.stub.consumeTicket("four", endsAtMs)).toBe(false);
});
