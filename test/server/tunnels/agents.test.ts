import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { toBase64, fromBase64, toBase64Url, toUtf8 } from "../../../shared/bytes.ts";
import { AGENT_GATES_HEADER } from "../../../protocol/schemas/tunnels/agent-gates.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { FRAME, FrameWriter } from "../../../protocol/wire/frames.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

async function findTunnel(subdomain: string): Promise<Tunnel | undefined> {
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  return body.find((tunnel) => tunnel.subdomain === subdomain);
}

describe("an agent with a valid token", () => {
  test("gets the requested name, which the tunnel shows", async () => {
    const { wireBytes } = await mintToken(owner);
    const agent = await api.connectAgent(wireBytes, { port: 3000, subdomain: "wanted" });
    expect(agent.protocol).toBe("underpass.v1");
    expect(await findTunnel("wanted")).toMatchObject({
      status: "active",
      agentConnected: true,
      localPort: 3000,
      protocol: "http",
    });
    agent.socket?.close();
  });

  test("gets a random name when it requests none", async () => {
    const { wireBytes } = await mintToken(owner);
    const agent = await api.connectAgent(wireBytes, { port: 4321 });
    const { body } = await owner.get<Tunnel[]>("/tunnels");
    const tunnel = body.find(({ localPort }) => localPort === 4321);
    expect(tunnel?.subdomain).toMatch(/^[a-z]+-[a-z]+-[0-9a-z]{6}$/);
    agent.socket?.close();
  });

  test("resumes its tunnel, with its new port", async () => {
    const { wireBytes } = await mintToken(owner);
    const first = await api.connectAgent(wireBytes, { port: 3000, subdomain: "again" });
    const before = await findTunnel("again");
    first.socket?.close();
    const second = await api.connectAgent(wireBytes, { port: 3001, subdomain: "again" });
    expect(await findTunnel("again")).toMatchObject({ id: before?.id, localPort: 3001 });
    second.socket?.close();
  });

  test("resumes the tunnel that it serves without waiting for its token's lock", async () => {
    const { wireBytes, nonce } = await mintToken(owner, { tunnelQuota: 1 });
    await api.connectAgent(wireBytes, { port: 3000, subdomain: "agent-back" });
    const resumption = {
      port: 3001,
      subdomain: "agent-back",
      tunnel: (await findTunnel("agent-back"))!.id,
    };
    await api.sql("begin");
    try {
      // An agent that connects for the first time holds this lock.
      await api.sql("select from tokens where nonce = $1 for update", [nonce]);
      const agent = await api.connectAgent(wireBytes, resumption);
      expect(agent.code).toBeUndefined();
      agent.socket?.close();
    } finally {
      await api.sql("rollback");
    }
    expect(await findTunnel("agent-back")).toMatchObject({
      id: resumption.tunnel,
      localPort: 3001,
    });
  });

  test("does not resume once its budget is spent, nor a tunnel that another token serves", async () => {
    const { wireBytes, nonce } = await mintToken(owner);
    await api.connectAgent(wireBytes, { port: 3000, subdomain: "agent-spent" });
    const resumption = {
      port: 3001,
      subdomain: "agent-spent",
      tunnel: (await findTunnel("agent-spent"))!.id,
    };
    const other = await api.connectAgent((await mintToken(owner)).wireBytes, resumption);
    expect(other.code).toBe(CLOSE.duplicate_name);
    await api.sql("update tokens set monthly_budget_usd_cents = 0 where nonce = $1", [nonce]);
    expect((await api.connectAgent(wireBytes, resumption)).code).toBe(CLOSE.BUDGET_EXCEEDED);
    await api.sql("update tokens set revoked_at = now() where nonce = $1", [nonce]);
    expect((await api.connectAgent(wireBytes, resumption)).code).toBe(CLOSE.unauthorized);
    expect(await findTunnel("agent-spent")).toMatchObject({ localPort: 3000 });
  });

  test("takes a reserved tunnel over", async () => {
    await owner.post("/tunnels", { localPort: 1, subdomain: "prepared" });
    const { wireBytes } = await mintToken(owner);
    const agent = await api.connectAgent(wireBytes, { port: 3000, subdomain: "prepared" });
    expect(agent.code).toBeUndefined();
    expect(await findTunnel("prepared")).toMatchObject({ status: "active", localPort: 3000 });
    agent.socket?.close();
  });

  test("may send it in base64 or base64url", async () => {
    const { wireBytes } = await mintToken(owner);
    const url = toBase64Url(fromBase64(wireBytes)!);
    const agent = await api.connectAgent(url, { port: 3000, subdomain: "base64url" });
    expect(agent.code).toBeUndefined();
    agent.socket?.close();
  });

  test("gets a shorter lifetime when it requests one", async () => {
    const { wireBytes } = await mintToken(owner);
    const agent = await api.connectAgent(wireBytes, {
      port: 3000,
      subdomain: "agent-brief",
      ttl: 600,
    });
    const { createdAt, expiresAt } = (await findTunnel("agent-brief"))!;
    expect(Date.parse(expiresAt!) - Date.parse(createdAt)).toBe(600_000);
    agent.socket?.close();
  });

  test("gets the lifetime that the plan grants, to the millisecond", async () => {
    const person = await api.owner();
    await api.sql("update organizations set plan = 'free' where id = $1", [person.orgId]);
    const { wireBytes } = await mintToken(person);
    const agent = await api.connectAgent(wireBytes, { port: 3000 });
    const [tunnel] = (await person.get<Tunnel[]>("/tunnels")).body;
    expect(Date.parse(tunnel!.expiresAt!) - Date.parse(tunnel!.createdAt)).toBe(3600_000);
    agent.socket?.close();
  });
});

describe("an agent is refused with a close code", () => {
  interface Case {
    query?: Record<string, string | number>;
    bearer?: (wireBytes: string) => string | undefined;
    protocols?: string[];
    scope?: object;
    close: [keyof typeof CLOSE, RegExp];
  }
  const cases: Record<string, Case> = {
    "without a protocol": { protocols: [], close: ["unsupported_version", /underpass\.v1/] },
    "with a protocol that is too new for the server": {
      protocols: ["underpass.v9"],
      close: ["unsupported_version", /requires underpass\.v1; upgrade the server$/],
    },
    "with a protocol that is too old for the server": {
      protocols: ["underpass.v0"],
      close: [
        "unsupported_version",
        /requires underpass\.v1; upgrade the agent \[agent_too_old\]$/,
      ],
    },
    "without a token": { bearer: () => undefined, close: ["unauthorized", /required/] },
    "with an invalid token": { bearer: () => "%%%", close: ["unauthorized", /unreadable/] },
    "with a truncated token": {
      bearer: (token) => token.slice(0, 80),
      close: ["unauthorized", /unreadable/],
    },
    "with a token in a mixed alphabet": {
      bearer: (token) => `-+${token.slice(2)}`,
      close: ["unauthorized", /unreadable/],
    },
    "with a modified token": {
      bearer: (token) => {
        const bytes = fromBase64(token)!;
        bytes[8]! ^= 1;
        return toBase64(bytes);
      },
      close: ["unauthorized", /not signed/],
    },
    "with no port": { query: { port: "" }, close: ["invalid_request", /port/] },
    "with a port of 70000": { query: { port: 70_000 }, close: ["invalid_request", /port/] },
    "with a name in upper case": {
      query: { port: 1, subdomain: "Upper" },
      close: ["invalid_request", /subdomain/],
    },
    "with a name that the service reserves": {
      query: { port: 1, subdomain: "admin" },
      close: ["duplicate_name", /reserved.* \[name_unavailable\]$/],
    },
    "with a protocol that does not exist": {
      query: { port: 1, protocol: "gopher" },
      close: ["invalid_request", /protocol/],
    },
    "for a name that its token does not allow": {
      scope: { allowedSubdomains: ["dev-*"] },
      query: { port: 1, subdomain: "prod" },
      close: ["forbidden", /dev-\* \[name_not_allowed\]$/],
    },
    "for a project that does not exist": {
      query: { port: 1, subdomain: "a", project: "nowhere" },
      close: ["forbidden", /the project does not exist \[project_not_found\]$/],
    },
  };

  test.each(Object.entries(cases))("%s", async (_, { query, bearer, protocols, scope, close }) => {
    const { wireBytes } = await mintToken(owner, scope);
    const token = bearer ? bearer(wireBytes) : wireBytes;
    const options = protocols ? { protocols } : {};
    const attempt = await api.connectAgent(token, query ?? { port: 3000 }, options);
    const [name, reason] = close;
    expect(attempt.code).toBe(CLOSE[name]);
    expect(attempt.reason).toMatch(new RegExp(`^${name}: `));
    expect(attempt.reason).toMatch(reason);
  });

  test("once its token is revoked, and a connected agent is disconnected", async () => {
    const { wireBytes, nonce } = await mintToken(owner);
    const agent = await api.connectAgent(wireBytes, { port: 3000, subdomain: "agent-revoked" });
    const closed = new Promise<[number, string]>((resolve) => {
      agent.socket?.once("close", (code, reason) => resolve([code, reason.toString()]));
    });
    expect((await owner.delete(`/tokens/${nonce}`)).status).toBe(200);
    expect(await closed).toEqual([
      CLOSE.unauthorized,
      expect.stringContaining("the token was revoked"),
    ]);
    const again = await api.connectAgent(wireBytes, { port: 3000, subdomain: "agent-revoked" });
    expect(again).toMatchObject({
      code: CLOSE.unauthorized,
      reason: expect.stringContaining("revoked"),
    });
  });

  test("whose token is unknown to the database, also if it brings a password", async () => {
    const { wireBytes, nonce } = await mintToken(owner);
    await api.sql("delete from tokens where nonce = $1", [nonce]);
    const gates = { basicAuth: { username: "ann", password: "open sesame" } };
    const header = { [AGENT_GATES_HEADER]: toBase64Url(toUtf8(JSON.stringify(gates))) };
    for (const headers of [{}, header]) {
      expect(await api.connectAgent(wireBytes, { port: 1 }, { headers })).toMatchObject({
        code: CLOSE.unauthorized,
        reason: "unauthorized: the token is unknown",
      });
    }
  });

  test("for a name that another organization holds", async () => {
    const otherOwner = await api.owner();
    await otherOwner.post("/tunnels", { localPort: 1, subdomain: "theirs" });
    const { wireBytes } = await mintToken(owner);
    const attempt = await api.connectAgent(wireBytes, { port: 1, subdomain: "theirs" });
    expect(attempt).toMatchObject({ code: CLOSE.duplicate_name });
  });

  test("for a name that another token serves, until that agent disconnects", async () => {
    const [own, other] = [await mintToken(owner), await mintToken(owner)];
    const first = await api.connectAgent(own.wireBytes, { port: 1, subdomain: "agent-contested" });
    const second = await api.connectAgent(other.wireBytes, {
      port: 1,
      subdomain: "agent-contested",
    });
    expect(second).toMatchObject({
      code: CLOSE.duplicate_name,
      reason: expect.stringContaining("another token"),
    });

    first.socket?.close();
    const later = await waitUntil(async () => {
      const attempt = await api.connectAgent(other.wireBytes, {
        port: 1,
        subdomain: "agent-contested",
      });
      return attempt.socket;
    });
    later.close();
  });

  test("when two request a token's last tunnel at once, one of them", async () => {
    const { wireBytes } = await mintToken(owner, { tunnelQuota: 1 });
    const attempts = await Promise.all(
      ["last-a", "last-b", "last-c"].map((subdomain) =>
        api.connectAgent(wireBytes, { port: 1, subdomain }),
      ),
    );
    const codes = attempts.map(({ code }) => code ?? "open").sort();
    expect(codes).toEqual([CLOSE.quota_exceeded, CLOSE.quota_exceeded, "open"]);
    for (const { socket } of attempts) socket?.close();
  });

  test("when two organizations request one name at once, one of them", async () => {
    const bearers = await Promise.all(
      [await api.owner(), await api.owner()].map((person) => mintToken(person)),
    );
    const attempts = await Promise.all(
      bearers.map(({ wireBytes }) => api.connectAgent(wireBytes, { port: 1, subdomain: "raced" })),
    );
    const codes = attempts.map(({ code }) => code ?? "open").sort();
    expect(codes).toEqual([CLOSE.duplicate_name, "open"]);
    for (const { socket } of attempts) socket?.close();
  });
});

test("a request without an upgrade is refused, and before that one without a token", async () => {
  const unknown = await api.anonymous.get("/agent/connect?port=1");
  expect([unknown.status, unknown.body]).toMatchObject([401, { error: "unauthorized" }]);
  const reply = await owner.get("/agent/connect?port=1");
  expect([reply.status, reply.body]).toMatchObject([426, { error: "upgrade_expected" }]);
  expect(reply.headers.get("upgrade")).toBe("websocket");
});

test("deleting a tunnel disconnects its agent", async () => {
  const { wireBytes } = await mintToken(owner);
  const agent = await api.connectAgent(wireBytes, { port: 3000, subdomain: "deleted" });
  const closed = new Promise<number>((resolve) => agent.socket?.once("close", resolve));
  const { id } = (await findTunnel("deleted"))!;
  await owner.delete(`/tunnels/${id}`);
  expect(await closed).toBe(CLOSE.tunnel_deleted);
});

test("an agent that vanished is not shown as connected", async () => {
  const { wireBytes } = await mintToken(owner);
  const agent = await api.connectAgent(wireBytes, { port: 3000, subdomain: "silent" });
  agent.socket?.terminate();
  await waitUntil(async () => (await findTunnel("silent"))?.agentConnected === false);
  expect((await findTunnel("silent"))?.status).toBe("offline");
});

test("a disconnected agent leaves the time at which it was last seen", async () => {
  const { wireBytes } = await mintToken(owner);
  const agent = await api.connectAgent(wireBytes, { port: 3000, subdomain: "goodbye" });
  const writer = new FrameWriter();
  writer.writeText(FRAME.goingAway, 0, 0, "stopped by its user");
  agent.socket?.send(writer.take());
  agent.socket?.close();
  const tunnel = await waitUntil(async () => {
    const found = await findTunnel("goodbye");
    return found?.agentConnected === false && found;
  });
  expect(Date.parse(tunnel.lastSeenAt ?? "")).toBeGreaterThanOrEqual(Date.parse(tunnel.createdAt));
});
