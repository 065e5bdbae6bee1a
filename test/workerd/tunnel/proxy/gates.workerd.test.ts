import { runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { EDGE_VERDICT_HEADER, formatEdgeVerdict } from "../../../../access/edge-verdict.ts";
import type { Tunnel } from "../../../../durable-objects/tunnel.ts";
import { ERROR_HEADER } from "../../../../protocol/errors.ts";
import { RATE_WINDOW_MS } from "../../../../protocol/limits.ts";
import type { PolicyAction } from "../../../../protocol/schemas/access/policies.ts";
import {
  ANN,
  AUTH,
  gatesIn,
  newVersion,
  outcomeOf,
  publish,
  setMaintenance,
} from "../../../harness/workerd/gated-tunnel.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

const DENY: PolicyAction = { kind: "deny", path_prefix: "/admin" };
/** Worth the edge's time. A visitor without a token costs nobody any. */
const TOKEN: PolicyAction = { kind: "jwt_validation" };
const limit = (perMinute: number, isEach = false): PolicyAction => ({
  kind: "rate_limit",
  requests_per_minute: perMinute,
  per_client_ip: isEach,
});

describe("settings", () => {
  test("hold from the next request on, and through sleep", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    expect((await outcomeOf(tunnel, agent, "/admin")).code).toBe("passed");
    await publish(tunnel, [DENY]);
    expect((await outcomeOf(tunnel, agent, "/admin")).code).toBe("forbidden");
    await tunnel.sleep();
    expect((await outcomeOf(tunnel, agent, "/%61dmin")).code).toBe("forbidden");
    expect((await outcomeOf(tunnel, agent, "/public")).code).toBe("passed");
    await publish(tunnel, []);
    expect((await outcomeOf(tunnel, agent, "/admin")).code).toBe("passed");
  });

  test("beyond the owner's plan let nobody through, whatever is shown, and through sleep", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const settings = { realm: "shop", basicAuth: AUTH, policy: null };
    const set = (isBeyondPlan: boolean) =>
      tunnel.stub.publishSettings({ ...settings, version: newVersion(), isBeyondPlan });
    const judged = async () => {
      const gates = gatesIn((await outcomeOf(tunnel, agent, "/")).answer)!;
      return { ...ANN, [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) };
    };
    await set(true);
    expect((await outcomeOf(tunnel, agent, "/")).code).toBe("upgrade_required");
    await tunnel.sleep();
    const believed = await judged();
    expect((await outcomeOf(tunnel, agent, "/", { headers: believed })).code).toBe(
      "upgrade_required",
    );
    await set(false);
    const again = { headers: await judged() };
    expect((await outcomeOf(tunnel, agent, "/", again)).code).toBe("passed");
  });

  test("that are older than those known change nothing", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const older = { version: newVersion(), realm: "shop", basicAuth: null, policy: null };
    const version = await publish(tunnel, [DENY]);
    await tunnel.stub.publishSettings(older);
    await tunnel.stub.publishSettings({ ...older, version });
    expect((await outcomeOf(tunnel, agent, "/admin")).code).toBe("forbidden");
  });

  test("that can't be judged are not taken for none", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [DENY]);
    const actions = [{ kind: "allow" }] as unknown as PolicyAction[];
    const odd = { version: newVersion(), realm: "shop", basicAuth: null, policy: { actions } };
    await runInDurableObject(tunnel.stub, (object: Tunnel) => {
      expect(() => object.publishSettings(odd)).toThrow();
    });
    expect((await outcomeOf(tunnel, agent, "/admin")).code).toBe("forbidden");
  });

  test("go with their tunnel: who comes to what is no more is told that", async () => {
    const tunnel = new LiveTunnel();
    await publish(tunnel, [DENY, limit(1)], AUTH);
    await setMaintenance(tunnel, true);
    await tunnel.stub.retire();
    expect((await tunnel.visit("/admin")).headers.get(ERROR_HEADER)).toBe("tunnel_not_found");
    await publish(tunnel, [DENY], AUTH);
    await setMaintenance(tunnel, true);
    expect((await tunnel.visit("/admin")).headers.get(ERROR_HEADER)).toBe("tunnel_not_found");
  });

  test("that refuse a visitor count no request", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [DENY]);
    await outcomeOf(tunnel, agent, "/admin");
    await outcomeOf(tunnel, agent, "/public");
    expect(await tunnel.stub.sendReport()).toMatchObject({ requests: 1 });
  });
});

/** The headers of somebody whom the edge let through. */
async function letThrough(tunnel: LiveTunnel): Promise<Record<string, string>> {
  const gates = gatesIn(await tunnel.visit("/"))!;
  return { ...ANN, [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) };
}

describe("the edge", () => {
  test("is told the gates with the first answer, and of every change of them", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    expect(gatesIn((await outcomeOf(tunnel, agent, "/")).answer)).toBeUndefined();
    await publish(tunnel, [DENY, TOKEN]);
    const gates = gatesIn((await outcomeOf(tunnel, agent, "/")).answer)!;
    expect(gates).toMatchObject({ deny: ["/admin"], jwt: TOKEN, realm: "shop" });
    const judged = { headers: { [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) } };
    expect(gatesIn((await outcomeOf(tunnel, agent, "/", judged)).answer)).toBeUndefined();

    await publish(tunnel, [DENY, TOKEN, DENY]);
    const changed = gatesIn((await outcomeOf(tunnel, agent, "/", judged)).answer);
    expect(changed).toMatchObject({ deny: ["/admin", "/admin"] });
    expect(changed?.policyTag).not.toBe(gates.policyTag);
    await publish(tunnel, []);
    expect(gatesIn((await outcomeOf(tunnel, agent, "/", judged)).answer)).toBeNull();
  });

  test("is told of none that the object judges as fast by itself", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [DENY, limit(100)]);
    for (const path of ["/", "/admin"]) {
      expect(gatesIn((await outcomeOf(tunnel, agent, path)).answer)).toBeUndefined();
    }
  });

  test("is believed while it judges by the newest gates, and not any longer", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [DENY, TOKEN]);
    const gates = gatesIn((await outcomeOf(tunnel, agent, "/")).answer)!;
    const pass = { headers: { [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) } };
    const refuse = {
      headers: { [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, { code: "forbidden" }) },
    };
    expect((await outcomeOf(tunnel, agent, "/admin", pass)).code).toBe("passed");
    expect((await outcomeOf(tunnel, agent, "/", refuse)).code).toBe("forbidden");
    await tunnel.sleep();
    expect((await outcomeOf(tunnel, agent, "/admin", pass)).code).toBe("passed");
    await publish(tunnel, [DENY, TOKEN]);
    expect((await outcomeOf(tunnel, agent, "/admin", pass)).code).toBe("forbidden");
    expect((await outcomeOf(tunnel, agent, "/", refuse)).code).toBe("unauthorized");
  });

  test.each(["1", "{}", "true", "00000000-0000-4000-8000-000000000000", "", '" {"code":"x"}'])(
    "is nobody who only says %j",
    async (said) => {
      const tunnel = new LiveTunnel();
      const agent = await tunnel.agent();
      await publish(tunnel, [DENY]);
      const headers = { [EDGE_VERDICT_HEADER]: said };
      expect((await outcomeOf(tunnel, agent, "/admin", { headers })).code).toBe("forbidden");
    },
  );

  test("alone sees what is between it and the object: no agent does, and none can say it", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [], AUTH);
    const headers = { ...(await letThrough(tunnel)), underpass_judged: "x" };
    const visit = tunnel.visit("/", { headers });
    const { stream, pairs } = await agent.asked();
    expect(pairs.filter((part) => part.includes("judged"))).toEqual([]);
    agent.answer(stream, 200, ["Underpass-Gates", "null", "underpass-error", "forbidden"], "");
    const answer = await visit;
    expect(gatesIn(answer)).toBeUndefined();
    expect(answer.headers.get(ERROR_HEADER)).toBeNull();
  });
});

describe("a password", () => {
  test("is asked for, taken, and not passed on", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [], AUTH);
    const { code, answer } = await outcomeOf(tunnel, agent, "/");
    expect([code, answer.headers.get("www-authenticate")]).toEqual([
      "unauthorized",
      'Basic realm="shop"',
    ]);
    const headers = await letThrough(tunnel);
    const { asked } = await outcomeOf(tunnel, agent, "/", { headers });
    expect(asked?.pairs).not.toContain("authorization");
  });

  test("makes room for another that the policy sets", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const set: PolicyAction = { kind: "header_set", name: "Authorization", value: "Basic own" };
    await publish(tunnel, [set], AUTH);
    const headers = await letThrough(tunnel);
    const { asked } = await outcomeOf(tunnel, agent, "/", { headers });
    const at = asked!.pairs.indexOf("authorization");
    expect(asked!.pairs[at + 1]).toBe("Basic own");
    expect(asked!.pairs.filter((part) => part === "authorization")).toHaveLength(1);
  });

  test("is looked for in one place: no other line, and none that a visitor has taken away", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [], AUTH);
    const { authorization } = ANN;
    const elsewhere = { "proxy-authorization": authorization, "x-authorization": authorization };
    expect((await outcomeOf(tunnel, agent, "/", { headers: elsewhere })).code).toBe("unauthorized");
    const both = {
      ...(await letThrough(tunnel)),
      "proxy-authorization": "Basic eDp5",
      connection: "authorization",
    };
    const { code, asked } = await outcomeOf(tunnel, agent, "/", { headers: both });
    expect(code).toBe("passed");
    expect(asked!.pairs.filter((part) => part.includes("authorization"))).toEqual([]);
  });

  test("is wanted of WebSockets, too", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [], AUTH);
    const upgrade = { upgrade: "websocket" };
    const refused = await tunnel.visit("/socket", { headers: upgrade });
    expect([refused.status, refused.webSocket]).toEqual([401, null]);
    const headers = { ...(await letThrough(tunnel)), ...upgrade };
    const visit = tunnel.visit("/socket", { headers });
    const { stream, pairs } = await agent.asked();
    expect(pairs).not.toContain("authorization");
    agent.answer(stream, 101);
    const answer = await visit;
    expect([answer.status, gatesIn(answer)]).toEqual([101, undefined]);
    answer.webSocket!.accept();
    answer.webSocket!.close();
  });
});

describe("header_set", () => {
  test("sets a line over whatever the visitor said, also one taken away by Connection", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [{ kind: "header_set", name: "X-Team", value: "bl\u00fce" }]);
    const headers = { "x-team": "red", connection: "x-team" };
    const { asked, answer } = await outcomeOf(tunnel, agent, "/", { headers });
    const values = asked!.pairs.filter(
      (_, at) => at % 2 === 1 && asked!.pairs[at - 1] === "x-team",
    );
    expect(values).toEqual(["bl\u00fce"]);
    expect(gatesIn(answer)).toBeUndefined();
  });
});

/** In the middle of a minute, so that none ends within the test. */
const midMinute = () => {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ["Date"], now: now - (now % RATE_WINDOW_MS) + 20_000 });
};
const passed = (outcomes: { code: string | null }[]) =>
  outcomes.filter(({ code }) => code === "passed").length;

const savedParts = (tunnel: LiveTunnel) =>
  runInDurableObject(tunnel.stub, (_, { storage }) => {
    return [...storage.kv.list({ prefix: "rate:" })].length;
  });

describe("a rate limit", () => {
  test("is exact for sixty visitors at once, and says when to come back", async () => {
    midMinute();
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [limit(25)]);
    const visits = Array.from({ length: 60 }, () => tunnel.visit("/"));
    for (let n = 0; n < 25; n++) agent.answer((await agent.asked()).stream, 204);
    const answers = await Promise.all(visits);
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(25);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      [ERROR_HEADER]: "rate_limited",
      "retry-after": "40",
      "ratelimit-limit": "25",
      "ratelimit-remaining": "0",
      "ratelimit-reset": "40",
      "ratelimit-policy": "25;w=60",
    });
    expect(agent.untaken).toBe(0);
  });

  test("is the same minute for a tunnel that slept", async () => {
    midMinute();
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [limit(3)]);
    for (let n = 0; n < 2; n++) await outcomeOf(tunnel, agent, "/");
    await vi.waitUntil(async () => (await savedParts(tunnel)) > 0, WAIT_OPTIONS);
    await tunnel.sleep();
    expect((await outcomeOf(tunnel, agent, "/")).code).toBe("passed");
    expect((await outcomeOf(tunnel, agent, "/")).code).toBe("rate_limited");
    vi.setSystemTime(Date.now() + RATE_WINDOW_MS);
    expect((await outcomeOf(tunnel, await tunnel.agent(), "/")).code).toBe("passed");
  });

  test("counts what got through the other gates, and nothing that did not", async () => {
    midMinute();
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [limit(2), DENY]);
    for (let n = 0; n < 5; n++) await outcomeOf(tunnel, agent, "/admin");
    const outcomes = [];
    for (let n = 0; n < 4; n++) outcomes.push(await outcomeOf(tunnel, agent, "/"));
    expect(passed(outcomes)).toBe(2);
  });

  test("leaves nothing behind when it is taken away", async () => {
    midMinute();
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [limit(1)]);
    await outcomeOf(tunnel, agent, "/");
    await vi.waitUntil(async () => (await savedParts(tunnel)) > 0, WAIT_OPTIONS);
    await publish(tunnel, []);
    expect(await savedParts(tunnel)).toBe(0);
  });
});
