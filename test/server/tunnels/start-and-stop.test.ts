/** A stopped tunnel stays stopped until it is started again; an expired or deleted one cannot be started. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type ConnectionAttempt,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
let token: string;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  token = (await mintToken(owner, { tunnelQuota: 100 })).wireBytes;
});
afterAll(() => api.stop());

const reserve = async (subdomain: string, by = owner) =>
  (await by.post<Tunnel>("/tunnels", { localPort: 1, subdomain })).body;
const stop = ({ id }: Tunnel, by = owner) => by.post<{ status: string }>(`/tunnels/${id}/stop`);
const start = ({ id }: Tunnel, by = owner) => by.post<{ status: string }>(`/tunnels/${id}/start`);
const connect = (subdomain: string, more: Record<string, string> = {}) =>
  api.connectAgent(token, { port: 1, subdomain, ...more });
const findTunnel = async ({ id }: Tunnel) =>
  (await owner.get<Tunnel[]>("/tunnels")).body.find((tunnel) => tunnel.id === id);
const waitForClose = ({ socket, code, reason }: ConnectionAttempt) =>
  new Promise<[number?, string?]>((resolve) => {
    if (!socket || socket.readyState === socket.CLOSED) resolve([code, reason]);
    socket?.once("close", (code: number, reason: Buffer) => resolve([code, reason.toString()]));
  });
const readEvents = ({ id }: Tunnel) =>
  api.sql<{ action: string }>(
    "select action from audit_events where resource_id = $1 order by created_at, id",
    [id],
  );

describe("stopping a tunnel", () => {
  test("disconnects its agent with the reason, and refuses every agent", async () => {
    const tunnel = await reserve("start-stopped");
    const closed = waitForClose(await connect("start-stopped"));
    expect(await stop(tunnel)).toMatchObject({
      status: 200,
      body: { id: tunnel.id, status: "offline" },
    });
    expect(await closed).toEqual([CLOSE.tunnel_stopped, "tunnel_stopped: the tunnel was stopped"]);
    expect(await connect("start-stopped")).toMatchObject({ code: CLOSE.tunnel_stopped });
    expect(await findTunnel(tunnel)).toMatchObject({ status: "offline", agentConnected: false });
  });

  test("is told by the list until the tunnel is started", async () => {
    const tunnel = await reserve("start-told");
    expect(tunnel.stoppedAt).toBe(null);
    await stop(tunnel);
    expect(await findTunnel(tunnel)).toMatchObject({ stoppedAt: expect.any(String) });
    await start(tunnel);
    expect(await findTunnel(tunnel)).toMatchObject({ status: "active", stoppedAt: null });
  });

  test("makes a tunnel offline that was never served", async () => {
    const tunnel = await reserve("never");
    expect((await stop(tunnel)).body.status).toBe("offline");
    expect((await findTunnel(tunnel))?.status).toBe("offline");
  });

  test("happens once, also with concurrent requests", async () => {
    const tunnel = await reserve("start-once");
    const replies = await Promise.all(Array.from({ length: 20 }, () => stop(tunnel)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    const actions = (await readEvents(tunnel)).map(({ action }) => action);
    expect(actions).toEqual(["tunnel_created", "tunnel_stopped"]);
  });

  test("disconnects an agent that is connecting at the same time", async () => {
    const tunnel = await reserve("coming");
    const agents = Array.from({ length: 20 }, () => connect("coming"));
    await stop(tunnel);
    await Promise.all(agents);
    await waitUntil(async () => (await findTunnel(tunnel))?.agentConnected === false);
    expect(await connect("coming")).toMatchObject({ code: CLOSE.tunnel_stopped });
    const openAttempts = (await Promise.all(agents)).filter(
      ({ socket }) => socket?.readyState === 1,
    );
    await Promise.all(openAttempts.map(waitForClose));
    expect((await findTunnel(tunnel))?.status).toBe("offline");
  });

  test("retains the name, and frees the token's quota", async () => {
    const { wireBytes } = await mintToken(owner, { tunnelQuota: 1 });
    const tunnel = await reserve("stopped-name");
    await api.connectAgent(wireBytes, { port: 1, subdomain: "stopped-name" });
    await stop(tunnel);
    const agent = await api.connectAgent(wireBytes, { port: 1, subdomain: "stopped-other" });
    expect(agent.code).toBeUndefined();
    const otherOwner = await api.owner();
    expect(
      await otherOwner.post("/tunnels", { localPort: 1, subdomain: "stopped-name" }),
    ).toMatchObject({
      status: 409,
    });
    expect(await api.connectAgent(wireBytes, { port: 1, subdomain: "stopped-name" })).toMatchObject(
      {
        code: CLOSE.tunnel_stopped,
      },
    );
    agent.socket?.close();
  });
});

describe("starting a tunnel", () => {
  test("marks it active, and accepts its agent again", async () => {
    const tunnel = await reserve("started");
    await stop(tunnel);
    expect(await start(tunnel)).toMatchObject({ status: 200, body: { status: "active" } });
    expect(await findTunnel(tunnel)).toMatchObject({ status: "active", agentConnected: false });
    const agent = await connect("started");
    expect(agent.code).toBeUndefined();
    agent.socket?.close();
    await waitUntil(async () => (await findTunnel(tunnel))?.status === "offline");
  });

  test("of one that was never stopped marks it active, once", async () => {
    const tunnel = await reserve("fresh");
    for (let i = 0; i < 2; i += 1) expect((await start(tunnel)).body.status).toBe("active");
    const actions = (await readEvents(tunnel)).map(({ action }) => action);
    expect(actions).toEqual(["tunnel_created", "tunnel_started"]);
  });

  test("and stopping it concurrently leave one state, in the row and for agents", async () => {
    const tunnel = await reserve("start-contested");
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? stop(tunnel) : start(tunnel))),
    );
    expect(replies.every(({ status }) => status === 200)).toBe(true);
    const [row] = await api.sql<{ stopped_at: Date | null }>(
      "select stopped_at from tunnels where id = $1",
      [tunnel.id],
    );
    const agent = await connect("start-contested");
    expect(agent.code).toBe(row!.stopped_at === null ? undefined : CLOSE.tunnel_stopped);
    agent.socket?.close();
  });
});

describe("a tunnel that cannot be started or stopped", () => {
  test.each([
    ["start", start],
    ["stop", stop],
  ] as const)("%s: of another organization, deleted, or expired", async (name, act) => {
    const tunnel = await reserve(`not-${name}`);
    expect((await act(tunnel, await api.owner())).status).toBe(404);
    expect((await act(tunnel, await api.colleague(owner, "viewer"))).status).toBe(403);
    await api.sql("update tunnels set expires_at = now() where id = $1", [tunnel.id]);
    expect(await act(tunnel)).toMatchObject({ status: 410, body: { error: "expired" } });
    expect((await findTunnel(tunnel))?.status).toBe("expired");
    expect(await act(tunnel)).toMatchObject({ status: 410 });
    await owner.delete(`/tunnels/${tunnel.id}`);
    expect((await act(tunnel)).status).toBe(404);
  });
});

describe("the expiry of a tunnel", () => {
  test("notifies the agent, sets the status and frees the name for its organization", async () => {
    const tunnel = await reserve("ending");
    const endsAt = Date.now() + 2_000;
    await api.sql("update tunnels set expires_at = $2 where id = $1", [
      tunnel.id,
      new Date(endsAt),
    ]);
    const closed = waitForClose(await connect("ending"));
    expect(await closed).toEqual([CLOSE.tunnel_expired, "tunnel_expired: the tunnel has expired"]);
    expect(Date.now()).toBeGreaterThanOrEqual(endsAt);
    expect(await findTunnel(tunnel)).toMatchObject({ status: "expired", agentConnected: false });
    const otherOwner = await api.owner();
    const wanted = { localPort: 1, subdomain: "ending" };
    expect(await otherOwner.post("/tunnels", wanted)).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining("It is reserved until") },
    });
    expect((await reserve("ending")).subdomain).toBe("ending");
    const actions = (await readEvents(tunnel)).map(({ action }) => action);
    expect(actions).toEqual(["tunnel_created", "tunnel_expired"]);
  });

  test.each([
    ["deleted", CLOSE.tunnel_deleted],
    ["expired", CLOSE.tunnel_expired],
  ] as const)("is reported to an agent that reconnects to one that is %s", async (end, code) => {
    const tunnel = await reserve(`comeback-${end}`);
    if (end === "deleted") await owner.delete(`/tunnels/${tunnel.id}`);
    else await api.sql("update tunnels set expires_at = now() where id = $1", [tunnel.id]);
    const resumption = { tunnel: tunnel.id };
    expect(await connect(`comeback-${end}`, resumption)).toMatchObject({ code });
    const { subdomain } = await reserve(`comeback-${end}`);
    expect(await connect(subdomain, resumption)).toMatchObject({ code });
    const agent = await connect(subdomain);
    expect(agent.code).toBeUndefined();
    agent.socket?.close();
  });
});
