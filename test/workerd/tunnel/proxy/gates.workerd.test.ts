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
  readPolicyUpdate,
  newVersion,
  runVisit,
  publish,
  setMaintenance,
} from "../../../harness/workerd/gated-tunnel.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

const DENY: PolicyAction = { kind: "deny", path_prefix: "/admin" };
/** A slow gate, which the edge runs. A request without a token is refused without a look-up of keys. */
const TOKEN: PolicyAction = { kind: "jwt_validation" };
const limit = (perMinute: number, isEach = false): PolicyAction => ({
  kind: "rate_limit",
  requests_per_minute: perMinute,
  per_client_ip: isEach,
});

describe("settings", () => {
  test("apply to the next request, and after hibernation", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    expect((await runVisit(tunnel, agent, "/admin")).code).toBe("passed");
    await publish(tunnel, [DENY]);
    expect((await runVisit(tunnel, agent, "/admin")).code).toBe("forbidden");
    await tunnel.sleep();
    expect((await runVisit(tunnel, agent, "/%61dmin")).code).toBe("forbidden");
    expect((await runVisit(tunnel, agent, "/public")).code).toBe("passed");
    await publish(tunnel, []);
    expect((await runVisit(tunnel, agent, "/admin")).code).toBe("passed");
  });

  test("beyond the owner's plan refuse all requests, whatever their credentials, and after hibernation", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const settings = { realm: "shop", basicAuth: AUTH, policy: null };
    const set = (isBeyondPlan: boolean) =>
      tunnel.stub.publishAccessSettings({ ...settings, version: newVersion(), isBeyondPlan });
    const getHeaders = async () => {
      const gates = readPolicyUpdate((await runVisit(tunnel, agent, "/")).response)!;
      return { ...ANN, [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) };
    };
    await set(true);
    expect((await runVisit(tunnel, agent, "/")).code).toBe("upgrade_required");
    await tunnel.sleep();
    const withVerdict = await getHeaders();
    expect((await runVisit(tunnel, agent, "/", { headers: withVerdict })).code).toBe(
      "upgrade_required",
    );
    await set(false);
    const again = { headers: await getHeaders() };
    expect((await runVisit(tunnel, agent, "/", again)).code).toBe("passed");
  });

  test("with an older version change nothing", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const older = { version: newVersion(), realm: "shop", basicAuth: null, policy: null };
    const version = await publish(tunnel, [DENY]);
    await tunnel.stub.publishAccessSettings(older);
    await tunnel.stub.publishAccessSettings({ ...older, version });
    expect((await runVisit(tunnel, agent, "/admin")).code).toBe("forbidden");
  });

  test("that are invalid are rejected, not treated as none", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [DENY]);
    const actions = [{ kind: "allow" }] as unknown as PolicyAction[];
    const odd = { version: newVersion(), realm: "shop", basicAuth: null, policy: { actions } };
    await runInDurableObject(tunnel.stub, async (object: Tunnel) => {
      await expect(object.publishAccessSettings(odd)).rejects.toThrow();
    });
    expect((await runVisit(tunnel, agent, "/admin")).code).toBe("forbidden");
  });

  test("are removed with their tunnel: its visitors get 404", async () => {
    const tunnel = new LiveTunnel();
    await publish(tunnel, [DENY, limit(1)], AUTH);
    await setMaintenance(tunnel, true);
    await tunnel.stub.retire();
    expect((await tunnel.visit("/admin")).headers.get(ERROR_HEADER)).toBe("tunnel_not_found");
    await publish(tunnel, [DENY], AUTH);
    await setMaintenance(tunnel, true);
    expect((await tunnel.visit("/admin")).headers.get(ERROR_HEADER)).toBe("tunnel_not_found");
  });

  test("that refuse a request do not count it", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [DENY]);
    await runVisit(tunnel, agent, "/admin");
    await runVisit(tunnel, agent, "/public");
    expect(await tunnel.stub.sendReport()).toMatchObject({ requests: 1 });
  });
});

/** The headers of a request that the edge has admitted. */
async function letThrough(tunnel: LiveTunnel): Promise<Record<string, string>> {
  const gates = readPolicyUpdate(await tunnel.visit("/"))!;
  return { ...ANN, [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) };
}

describe("the edge", () => {
  test("gets the gates with the first response, and again after every change", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    expect(readPolicyUpdate((await runVisit(tunnel, agent, "/")).response)).toBeUndefined();
    await publish(tunnel, [DENY, TOKEN]);
    const gates = readPolicyUpdate((await runVisit(tunnel, agent, "/")).response)!;
    expect(gates).toMatchObject({ deny: ["/admin"], jwt: TOKEN, realm: "shop" });
    const withVerdict = { headers: { [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) } };
    expect(
      readPolicyUpdate((await runVisit(tunnel, agent, "/", withVerdict)).response),
    ).toBeUndefined();

    await publish(tunnel, [DENY, TOKEN, DENY]);
    const changed = readPolicyUpdate((await runVisit(tunnel, agent, "/", withVerdict)).response);
    expect(changed).toMatchObject({ deny: ["/admin", "/admin"] });
    expect(changed?.gatesTag).not.toBe(gates.gatesTag);
    await publish(tunnel, []);
    expect(readPolicyUpdate((await runVisit(tunnel, agent, "/", withVerdict)).response)).toBeNull();
  });

  test("gets no gates if none is slow", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [DENY, limit(100)]);
    for (const path of ["/", "/admin"]) {
      expect(readPolicyUpdate((await runVisit(tunnel, agent, path)).response)).toBeUndefined();
    }
  });

  test("is trusted only while it authorizes by the current gates", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [DENY, TOKEN]);
    const gates = readPolicyUpdate((await runVisit(tunnel, agent, "/")).response)!;
    const pass = { headers: { [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, null) } };
    const refuse = {
      headers: { [EDGE_VERDICT_HEADER]: formatEdgeVerdict(gates, { code: "forbidden" }) },
    };
    expect((await runVisit(tunnel, agent, "/admin", pass)).code).toBe("passed");
    expect((await runVisit(tunnel, agent, "/", refuse)).code).toBe("forbidden");
    await tunnel.sleep();
    expect((await runVisit(tunnel, agent, "/admin", pass)).code).toBe("passed");
    await publish(tunnel, [DENY, TOKEN]);
    expect((await runVisit(tunnel, agent, "/admin", pass)).code).toBe("forbidden");
    expect((await runVisit(tunnel, agent, "/", refuse)).code).toBe("unauthorized");
  });

  test.each(["1", "{}", "true", "00000000-0000-4000-8000-000000000000", "", '" {"code":"x"}'])(
    "does not trust a visitor's header with the value %j",
    async (value) => {
      const tunnel = new LiveTunnel();
      const agent = await tunnel.agent();
      await publish(tunnel, [DENY]);
      const headers = { [EDGE_VERDICT_HEADER]: value };
      expect((await runVisit(tunnel, agent, "/admin", { headers })).code).toBe("forbidden");
    },
  );

  test("alone exchanges its headers with the object: no agent receives or sets them", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [], AUTH);
    const headers = { ...(await letThrough(tunnel)), underpass_judged: "x" };
    const visit = tunnel.visit("/", { headers });
    const { stream, pairs } = await agent.nextRequest();
    expect(pairs.filter((part) => part.includes("judged"))).toEqual([]);
    agent.respond(stream, 200, ["Underpass-Gates", "null", "underpass-error", "forbidden"], "");
    const answer = await visit;
    expect(readPolicyUpdate(answer)).toBeUndefined();
    expect(answer.headers.get(ERROR_HEADER)).toBeNull();
  });
});

describe("a password", () => {
  test("is requested, accepted, and not forwarded", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [], AUTH);
    const { code, response } = await runVisit(tunnel, agent, "/");
    expect([code, response.headers.get("www-authenticate")]).toEqual([
      "unauthorized",
      'Basic realm="shop"',
    ]);
    const headers = await letThrough(tunnel);
    const { received } = await runVisit(tunnel, agent, "/", { headers });
    expect(received?.pairs).not.toContain("authorization");
  });

  test("is replaced by credentials that the policy sets", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const set: PolicyAction = { kind: "header_set", name: "Authorization", value: "Basic own" };
    await publish(tunnel, [set], AUTH);
    const headers = await letThrough(tunnel);
    const { received } = await runVisit(tunnel, agent, "/", { headers });
    const at = received!.pairs.indexOf("authorization");
    expect(received!.pairs[at + 1]).toBe("Basic own");
    expect(received!.pairs.filter((part) => part === "authorization")).toHaveLength(1);
  });

  test("is read from the Authorization header only, even if Connection names it", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [], AUTH);
    const { authorization } = ANN;
    const otherHeaders = { "proxy-authorization": authorization, "x-authorization": authorization };
    expect((await runVisit(tunnel, agent, "/", { headers: otherHeaders })).code).toBe(
      "unauthorized",
    );
    const both = {
      ...(await letThrough(tunnel)),
      "proxy-authorization": "Basic eDp5",
      connection: "authorization",
    };
    const { code, received } = await runVisit(tunnel, agent, "/", { headers: both });
    expect(code).toBe("passed");
    expect(received!.pairs.filter((part) => part.includes("authorization"))).toEqual([]);
  });

  test("is required of WebSockets, too", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [], AUTH);
    const upgrade = { upgrade: "websocket" };
    const refused = await tunnel.visit("/socket", { headers: upgrade });
    expect([refused.status, refused.webSocket]).toEqual([401, null]);
    const headers = { ...(await letThrough(tunnel)), ...upgrade };
    const visit = tunnel.visit("/socket", { headers });
    const { stream, pairs } = await agent.nextRequest();
    expect(pairs).not.toContain("authorization");
    agent.respond(stream, 101);
    const answer = await visit;
    expect([answer.status, readPolicyUpdate(answer)]).toEqual([101, undefined]);
    answer.webSocket!.accept();
    answer.webSocket!.close();
  });
});

describe("header_set", () => {
  test("replaces the visitor's header, also one that Connection names", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [{ kind: "header_set", name: "X-Team", value: "bl\u00fce" }]);
    const headers = { "x-team": "red", connection: "x-team" };
    const { received, response } = await runVisit(tunnel, agent, "/", { headers });
    const values = received!.pairs.filter(
      (_, at) => at % 2 === 1 && received!.pairs[at - 1] === "x-team",
    );
    expect(values).toEqual(["bl\u00fce"]);
    expect(readPolicyUpdate(response)).toBeUndefined();
  });
});

/** In the middle of a minute, so that it does not end during the test. */
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
  test("is exact for sixty concurrent requests, and says when to retry", async () => {
    midMinute();
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [limit(25)]);
    const visits = Array.from({ length: 60 }, () => tunnel.visit("/"));
    for (let n = 0; n < 25; n++) agent.respond((await agent.nextRequest()).stream, 204);
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
    expect(agent.pendingFrames).toBe(0);
  });

  test("keeps its count through hibernation", async () => {
    midMinute();
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [limit(3)]);
    for (let n = 0; n < 2; n++) await runVisit(tunnel, agent, "/");
    await vi.waitUntil(async () => (await savedParts(tunnel)) > 0, WAIT_OPTIONS);
    await tunnel.sleep();
    expect((await runVisit(tunnel, agent, "/")).code).toBe("passed");
    expect((await runVisit(tunnel, agent, "/")).code).toBe("rate_limited");
    vi.setSystemTime(Date.now() + RATE_WINDOW_MS);
    expect((await runVisit(tunnel, await tunnel.agent(), "/")).code).toBe("passed");
  });

  test("counts only requests that passed the other gates", async () => {
    midMinute();
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [limit(2), DENY]);
    for (let n = 0; n < 5; n++) await runVisit(tunnel, agent, "/admin");
    const outcomes = [];
    for (let n = 0; n < 4; n++) outcomes.push(await runVisit(tunnel, agent, "/"));
    expect(passed(outcomes)).toBe(2);
  });

  test("leaves no storage behind when it is removed", async () => {
    midMinute();
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await publish(tunnel, [limit(1)]);
    await runVisit(tunnel, agent, "/");
    await vi.waitUntil(async () => (await savedParts(tunnel)) > 0, WAIT_OPTIONS);
    await publish(tunnel, []);
    expect(await savedParts(tunnel)).toBe(0);
  });
});
