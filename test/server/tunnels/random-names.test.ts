/** Tunnels whose agents asked for any name are deleted when their agents have been away for long. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";
import {
  getSocket,
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => void (api = await startApi()));
afterAll(() => api.stop());

interface Served {
  owner: Person;
  wireBytes: string;
  tunnel: Tunnel;
}

async function getTunnel(owner: Person): Promise<Tunnel> {
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  return body[0]!;
}

/** An agent of a new organization connects and disconnects. */
async function serve(query: Record<string, string | number> = {}): Promise<Served> {
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner);
  const tunnel = await connectOnce(owner, wireBytes, query);
  return { owner, wireBytes, tunnel };
}

async function connectOnce(
  owner: Person,
  wireBytes: string,
  query: Record<string, string | number>,
): Promise<Tunnel> {
  getSocket(await api.connectAgent(wireBytes, { port: 3000, ...query })).close(1000);
  return waitUntil(async () => {
    const tunnel = await getTunnel(owner);
    return tunnel.status === "offline" && tunnel;
  });
}

/** Runs the job when the agent has been away for this time. @returns whether the tunnel still exists. */
async function survives({ owner, tunnel }: Served, time: string): Promise<boolean> {
  await api.sql(`update tunnels set last_seen_at = now() - interval '${time}' where id = $1`, [
    tunnel.id,
  ]);
  await api.runCron();
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  return body.some(({ id }) => id === tunnel.id);
}

test("after seven days, and not before", async () => {
  const served = await serve();
  expect(await survives(served, "167 hours")).toBe(true);
  expect(await survives(served, "169 hours")).toBe(false);
  const { body } = await served.owner.get<{ action: string }[]>("/events");
  expect(body[0]).toMatchObject({ action: "tunnel_deleted" });
});

test("also before its time to live ends", async () => {
  expect(await survives(await serve({ ttl: 30 * 24 * 3600 }), "8 days")).toBe(false);
});

test("not while a domain is bound to it", async () => {
  const served = await serve();
  const { owner, tunnel } = served;
  const domain = { domain: "random-names.example" };
  const { id } = (await owner.post<{ id: string }>("/domains", domain)).body;
  await api.sql("update domains set verified_at = now() where id = $1", [id]);
  await owner.put(`/domains/${id}/bind`, { tunnel_id: tunnel.id });
  expect(await survives(served, "8 days")).toBe(true);
});

test("not while an agent serves it", async () => {
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner);
  const socket = getSocket(await api.connectAgent(wireBytes, { port: 3000 }));
  const served = { owner, wireBytes, tunnel: await getTunnel(owner) };
  expect(await survives(served, "8 days")).toBe(true);
  socket.terminate();
});

test("also after its agent has reconnected to it", async () => {
  const served = await serve();
  const { id, name } = served.tunnel;
  await connectOnce(served.owner, served.wireBytes, { subdomain: name, tunnel: id });
  expect(await survives(served, "8 days")).toBe(false);
});

test("not when a user has asked for the name", async () => {
  const served = await serve();
  await connectOnce(served.owner, served.wireBytes, { subdomain: served.tunnel.name });
  expect(await survives(served, "8 days")).toBe(true);
});

test("not when the agent asked for a name", async () => {
  expect(await survives(await serve({ subdomain: "random-names" }), "8 days")).toBe(true);
});

test("a TCP tunnel with any port, and not one with a requested port", async () => {
  using _relay = await RelayLink.connect(api.server, { firstPort: 40_001, lastPort: 40_020 });
  // First, because any port can be this one.
  const requestedPort = await serve({ protocol: "tcp", remote_port: 40_010 });
  const anyPort = await serve({ protocol: "tcp" });
  expect(await survives(anyPort, "8 days")).toBe(false);
  expect(await survives(requestedPort, "8 days")).toBe(true);
});

test("not when it was created through the API", async () => {
  const owner = await api.owner();
  await owner.post("/tunnels", { localPort: 3000 });
  const { wireBytes } = await mintToken(owner);
  const { name } = await getTunnel(owner);
  const tunnel = await connectOnce(owner, wireBytes, { subdomain: name });
  expect(await survives({ owner, wireBytes, tunnel }, "8 days")).toBe(true);
});
