/** TCP tunnels in the API: their ports, their agents, and what does not apply to them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  getSocket,
  mintToken,
  startApi,
  type ConnectionAttempt,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { holdPort } from "../../harness/relay/tcp/held-ports.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";

type Answer = Tunnel & ErrorBody;

let api: TestApi;
let owner: Person;
let relay: RelayLink;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  const noRelay = await owner.post<Answer>("/tunnels", { localPort: 1, protocol: "tcp" });
  expect([noRelay.status, noRelay.body.error]).toEqual([503, "unavailable"]);
  expect(noRelay.body.message).toContain("No relay");
  relay = await RelayLink.connect(api.server, { firstPort: 40_001, lastPort: 40_300 });
});
afterAll(async () => {
  relay[Symbol.dispose]();
  await api.stop();
});

let names = 0;
function newName(): string {
  names += 1;
  return `tcp-${names}`;
}
const create = (body: object = {}, by: Person = owner) =>
  by.post<Answer>("/tunnels", { localPort: 5432, protocol: "tcp", ...body });
const formatOutcome = ({ status, body }: { status: number; body: { error?: string } }) =>
  `${status} ${body.error ?? "ok"}`;
const findTunnel = async (id: string, by: Person = owner) =>
  (await by.get<Tunnel[]>("/tunnels")).body.find((tunnel) => tunnel.id === id)!;

/** Connects another relay with few ports, which no other test uses. */
function connectRelay(count: number): Promise<RelayLink> {
  const relayId = `relay-${crypto.randomUUID().slice(0, 8)}`;
  return RelayLink.connect(api.server, {
    relayId,
    host: "2001:db8::1",
    firstPort: 50_001,
    lastPort: 50_000 + count,
  });
}

async function connect(wireBytes: string, query: Record<string, string | number> = {}) {
  return api.connectAgent(wireBytes, { port: 5432, protocol: "tcp", ...query });
}
const pickClose = ({ code, reason }: ConnectionAttempt) => ({ code, reason });
/** Other tests connect further relays. */
const OUTSIDE_RANGE = /is not in the port ranges? of the relays?: 40001 to \d+/;

describe("a TCP tunnel's port", () => {
  test("is reserved with it and in its URL, and an HTTP tunnel has none", async () => {
    const { status, body } = await create();
    expect(status).toBe(201);
    expect(body.publicPort).toBeGreaterThanOrEqual(40_001);
    expect(body).toMatchObject({
      protocol: "tcp",
      publicUrl: `tcp://relay.example.com:${body.publicPort}`,
      allowedCidrs: null,
      status: "inactive",
    });
    expect(await findTunnel(body.id)).toEqual(body);
    const http = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
    expect(http.body).toMatchObject({ publicPort: null, allowedCidrs: null });
  });

  test("is the requested one, unless it is taken or outside of the range", async () => {
    const port = await holdPort(owner);
    const { body } = await create({ publicPort: port });
    expect(body.publicPort).toBe(port);
    expect(formatOutcome(await create({ publicPort: port }))).toBe("409 duplicate_name");
    const otherOwner = await api.owner();
    expect(formatOutcome(await create({ publicPort: port }, otherOwner))).toBe(
      "409 duplicate_name",
    );
    const outside = await create({ publicPort: 40_000 });
    expect(formatOutcome(outside)).toBe("400 invalid_request");
    expect(outside.body.fields).toEqual([
      { path: "publicPort", message: expect.stringMatching(OUTSIDE_RANGE) },
    ]);
    expect(formatOutcome(await create({ publicPort: 0 }))).toBe("400 invalid_request");
    expect(formatOutcome(await create({ relayId: "nowhere" }))).toBe("400 invalid_request");
    for (const field of [{ publicPort: 40_100 }, { relayId: "main" }]) {
      const http = await owner.post<Answer>("/tunnels", { localPort: 1, ...field });
      expect(http.body.fields?.[0]?.message).toBe("must be given only with protocol tcp");
    }
    // The refused requests left no tunnel.
    const { body: tunnels } = await owner.get<Tunnel[]>("/tunnels");
    expect(tunnels.filter(({ publicPort }) => publicPort === port)).toHaveLength(1);
  });

  test("is of the requested relay, while it has a free one", async () => {
    const link = await connectRelay(1);
    const { relayId } = link.hello;
    const { body } = await create({ relayId });
    expect(body.publicUrl).toBe("tcp://[2001:db8::1]:50001");
    const exhausted = await create({ relayId });
    expect(formatOutcome(exhausted)).toBe("503 unavailable");
    expect(exhausted.body.message).toContain("no free TCP port");
    link[Symbol.dispose]();
  });

  test("is free for its organization when the tunnel is deleted or expires, for others a day later", async () => {
    const port = await holdPort(owner);
    const { body } = await create({ publicPort: port });
    await owner.delete(`/tunnels/${body.id}`);
    const otherOwner = await api.owner();
    expect(formatOutcome(await create({ publicPort: port }, otherOwner))).toBe(
      "409 duplicate_name",
    );
    const { body: again } = await create({ publicPort: port, ttlSeconds: 60 });
    expect(again.publicPort).toBe(port);
    await api.sql("update tunnels set expires_at = now() where id = $1", [again.id]);
    await api.runCron();
    const [released] = await api.sql<{ released_at: Date | null }>(
      "select released_at from relay_ports where port = $1 and protocol = 'tcp'",
      [port],
    );
    expect(released?.released_at).toBeInstanceOf(Date);
    await api.sql(
      "update relay_ports set released_at = now() - interval '25 hours' where port = $1",
      [port],
    );
    expect((await create({ publicPort: port }, otherOwner)).body.publicPort).toBe(port);
  });

  test("is refused to an organization that has as many as are free, or is waiting for approval", async () => {
    const person = await api.owner();
    using link = await connectRelay(3);
    const { relayId } = link.hello;
    expect((await create({ relayId }, person)).status).toBe(201);
    const second = await create({ relayId }, person);
    expect(formatOutcome(second)).toBe("409 conflict");
    await api.sql("update organizations set approval_status = 'pending' where id = $1", [
      person.orgId,
    ]);
    expect(formatOutcome(await create({}, person))).toBe("403 forbidden");
    expect((await person.get<Tunnel[]>("/tunnels")).body).toHaveLength(1);
  });

  test("is assigned to one of many concurrent requests for it", async () => {
    const port = await holdPort(owner);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => create({ publicPort: port })),
    );
    const codes = answers.map(formatOutcome).sort();
    expect(codes).toEqual(["201 ok", ...Array<string>(7).fill("409 duplicate_name")]);
  });
});

describe("an agent of a TCP tunnel", () => {
  test("gets a permanent port, with its URL in the welcome", async () => {
    const { wireBytes } = await mintToken(owner);
    const subdomain = newName();
    const first = getSocket(await connect(wireBytes, { subdomain }));
    const { body } = await owner.get<Tunnel[]>("/tunnels");
    const tunnel = body.find((each) => each.subdomain === subdomain)!;
    expect(tunnel).toMatchObject({ protocol: "tcp", status: "active", agentConnected: true });
    first.close(1000);
    const again = getSocket(await connect(wireBytes, { subdomain, tunnel: tunnel.id }));
    expect((await findTunnel(tunnel.id)).publicUrl).toBe(tunnel.publicUrl);
    again.close();
  });

  test("gets the requested port, moves to another one, and is refused one that is taken", async () => {
    const [first, second] = [await holdPort(owner), await holdPort(owner)];
    const { wireBytes } = await mintToken(owner);
    const subdomain = newName();
    const findPort = async () => {
      const { body } = await owner.get<Tunnel[]>("/tunnels");
      return body.find((each) => each.subdomain === subdomain)?.publicPort;
    };
    getSocket(await connect(wireBytes, { subdomain, remote_port: first }));
    expect(await findPort()).toBe(first);
    const moved = getSocket(await connect(wireBytes, { subdomain, remote_port: second }));
    expect(await findPort()).toBe(second);
    const refusedAttempt = await connect(wireBytes, { subdomain: newName(), remote_port: second });
    expect(pickClose(refusedAttempt)).toEqual({
      code: CLOSE.duplicate_name,
      reason: `duplicate_name: port ${second} is taken by ${subdomain} [port_of_own_tunnel]`,
    });
    // Only a token that may serve the tunnel is told its name.
    const other = newName();
    const restricted = await mintToken(owner, { allowedSubdomains: [other] });
    const query = { subdomain: other, remote_port: second };
    const { reason } = await connect(restricted.wireBytes, query);
    expect(reason).toMatch(/ is taken \[port_taken\]$/);
    const foreign = await mintToken(await api.owner());
    const { reason: told } = await connect(foreign.wireBytes, query);
    expect(told).toMatch(/ is taken \[port_taken\]$/);
    const outside = await connect(wireBytes, { subdomain: newName(), remote_port: 80 });
    expect(outside.code).toBe(CLOSE.invalid_request);
    expect(outside.reason).toMatch(OUTSIDE_RANGE);
    expect(outside.reason).toMatch(/^invalid_request: port 80 is not /);
    // A tunnel stays at its relay.
    const unmoved = await connect(wireBytes, { subdomain, remote_port: 80 });
    expect(unmoved.reason).toMatch(/port range of the relay: 40001 to \d+ \[port_out_of_range\]$/);
    moved.close();
  });

  test("sets or removes the allowlist when it first connects, and not when it reconnects", async () => {
    const { wireBytes, nonce } = await mintToken(owner);
    const subdomain = newName();
    const allow = "192.0.2.7/24,2001:db8::/32";
    const first = getSocket(await connect(wireBytes, { subdomain, allow }));
    const { body } = await owner.get<Tunnel[]>("/tunnels");
    const { id, allowedCidrs } = body.find((each) => each.subdomain === subdomain)!;
    expect(allowedCidrs).toEqual(["192.0.2.0/24", "2001:db8::/32"]);
    const events = await api.sql(
      "select metadata from audit_events where resource_id = $1 and action = 'tunnel_ip_allowlist_set'",
      [id],
    );
    expect(events).toEqual([{ metadata: { cidrs: allowedCidrs, by: "agent", tokenNonce: nonce } }]);
    await owner.delete(`/tunnels/${id}/ip-allowlist`);
    first.terminate();
    const query = { subdomain, tunnel: id, allow: "192.0.2.0/24" };
    const reconnected = getSocket(await connect(wireBytes, query));
    expect((await findTunnel(id)).allowedCidrs).toBe(null);
    reconnected.close();
    getSocket(await connect(wireBytes, { subdomain, allow }));
    expect((await findTunnel(id)).allowedCidrs).toHaveLength(2);
    const withoutList = getSocket(await connect(wireBytes, { subdomain, allow: "off" }));
    expect((await findTunnel(id)).allowedCidrs).toBe(null);
    withoutList.close();
    const [event] = await api.sql(
      "select action from audit_events where resource_id = $1 order by created_at desc limit 1",
      [id],
    );
    expect(event).toEqual({ action: "tunnel_ip_allowlist_removed" });
    for (const invalid of ["", "192.0.2.0/33", "example.com"]) {
      expect((await connect(wireBytes, { subdomain, allow: invalid })).code).toBe(
        CLOSE.invalid_request,
      );
    }
    for (const [name, value] of Object.entries({ allow: "192.0.2.0/24", remote_port: 40_260 })) {
      const http = await api.connectAgent(wireBytes, { port: 1, [name]: value });
      expect(http.code).toBe(CLOSE.invalid_request);
    }
  });

  test("serves a private tunnel without a port, also without a free one at any relay", async () => {
    const { wireBytes } = await mintToken(owner);
    const subdomain = newName();
    const query = { subdomain, private: "true" };
    const { body } = await create({ subdomain });
    const port = body.publicPort!;
    await api.sql("update relays set last_port = first_port - 1");
    try {
      const first = getSocket(await connect(wireBytes, query));
      const expected = { publicPort: null, publicUrl: `tcp://${subdomain}.localhost` };
      expect(await findTunnel(body.id)).toMatchObject({ ...expected, status: "active" });
      first.terminate();
      const again = getSocket(await connect(wireBytes, { ...query, tunnel: body.id }));
      expect(await findTunnel(body.id)).toMatchObject(expected);
      again.close();
    } finally {
      await api.sql("update relays set last_port = 40300 where id = 'main'");
    }
    const ports = await api.sql(
      "select from relay_ports where owner_id = $1 and released_at is null",
      [body.id],
    );
    expect(ports).toEqual([]);
    const publicAgain = getSocket(await connect(wireBytes, { subdomain, tunnel: body.id }));
    expect((await findTunnel(body.id)).publicPort).toBe(port);
    publicAgain.close();
    const refused = [
      await connect(wireBytes, { ...query, remote_port: port }),
      await connect(wireBytes, { subdomain, private: "yes" }),
      await api.connectAgent(wireBytes, { port: 1, private: "true" }),
    ];
    expect(refused.map(({ code }) => code)).toEqual(Array(3).fill(CLOSE.invalid_request));
  });

  test("does not get the name of an HTTP tunnel, nor the reverse", async () => {
    const { wireBytes } = await mintToken(owner);
    const [http, tcp] = [newName(), newName()];
    await owner.post("/tunnels", { localPort: 1, subdomain: http });
    await create({ subdomain: tcp });
    expect(pickClose(await connect(wireBytes, { subdomain: http }))).toEqual({
      code: CLOSE.invalid_request,
      reason: `invalid_request: ${http} is an HTTP tunnel, not a TCP tunnel [wrong_protocol]`,
    });
    expect(pickClose(await api.connectAgent(wireBytes, { port: 1, subdomain: tcp }))).toEqual({
      code: CLOSE.invalid_request,
      reason: `invalid_request: ${tcp} is a TCP tunnel, not an HTTP tunnel [wrong_protocol]`,
    });
  });

  test("gets a port for a tunnel that was created before relays existed", async () => {
    const { wireBytes } = await mintToken(owner);
    const subdomain = newName();
    const { body } = await create({ subdomain });
    await api.sql("update relay_ports set released_at = now() where owner_id = $1", [body.id]);
    await api.sql("update tunnels set relay_id = null, public_port = null where id = $1", [
      body.id,
    ]);
    expect(await findTunnel(body.id)).toMatchObject({ publicPort: null });
    const agent = getSocket(await connect(wireBytes, { subdomain }));
    expect((await findTunnel(body.id)).publicPort).toBe(body.publicPort);
    agent.close();
  });

  test("is refused for lack of ports in a way that makes it reconnect", async () => {
    const { wireBytes } = await mintToken(owner);
    await api.sql("update relays set last_port = first_port - 1");
    try {
      const attempt = await connect(wireBytes, { subdomain: newName() });
      expect(attempt.code).toBe(CLOSE.internal);
      expect(attempt.reason).toContain("no free TCP port");
    } finally {
      await api.sql("update relays set last_port = 40300 where id = 'main'");
    }
  });
});

describe("HTTP", () => {
  test("is refused for a TCP tunnel, and changes nothing", async () => {
    const { body: tunnel } = await create();
    const path = `/tunnels/${tunnel.id}`;
    const refused = [
      await owner.put<ErrorBody>(`${path}/auth`, { username: "ann", password: "open sesame" }),
      await owner.put<ErrorBody>(`${path}/policy`, { actions: [] }),
      await owner.post<ErrorBody>(`${path}/policy/dry-run`, { actions: [] }),
      await owner.put<ErrorBody>(`${path}/maintenance`, {}),
      await owner.put<ErrorBody>(`${path}/inspector`, {}),
      await owner.delete<ErrorBody>(`${path}/auth`),
      await owner.delete<ErrorBody>(`${path}/policy`),
      await owner.delete<ErrorBody>(`${path}/maintenance`),
      await owner.delete<ErrorBody>(`${path}/edge-auth`),
    ];
    for (const reply of refused) {
      expect(formatOutcome(reply)).toBe("400 invalid_request");
      expect(reply.body.message).toContain("is a TCP tunnel");
    }
    const domain = await owner.post<{ id: string }>("/domains", { domain: "tcp.example" });
    await api.sql("update domains set verified_at = now() where id = $1", [domain.body.id]);
    const bound = await owner.put<ErrorBody>(`/domains/${domain.body.id}/bind`, {
      tunnel_id: tunnel.id,
    });
    expect(formatOutcome(bound)).toBe("400 invalid_request");
    expect(await findTunnel(tunnel.id)).toEqual(tunnel);
    const actions = await api.sql<{ action: string }>(
      "select action from audit_events where resource_id = $1",
      [tunnel.id],
    );
    expect(actions.map(({ action }) => action)).toEqual(["tunnel_created"]);
  });

  test("is refused for a TCP tunnel on every plan, whatever the plan includes", async () => {
    const person = await api.owner();
    const { body: tunnel } = await create({}, person);
    await api.sql("update organizations set plan = 'free', trial_ends_at = null where id = $1", [
      person.orgId,
    ]);
    for (const [gate, body] of [
      ["auth", { username: "ann", password: "open sesame" }],
      ["edge-auth", { allowed_domains: [], allowed_emails: [] }],
    ] as const) {
      const reply = await person.put<ErrorBody>(`/tunnels/${tunnel.id}/${gate}`, body);
      expect([gate, formatOutcome(reply)]).toEqual([gate, "400 invalid_request"]);
      expect(reply.body.message).toContain("is a TCP tunnel");
    }
  });

  test("reaches no TCP tunnel by its name, before and after its agent connects", async () => {
    const { wireBytes } = await mintToken(owner);
    const subdomain = newName();
    await create({ subdomain });
    const visit = () =>
      exchange(
        api.server.port,
        `GET / HTTP/1.1\r\nHost: ${subdomain}.localhost\r\nAccept: application/json\r\n\r\n`,
      );
    const readErrorCode = async () =>
      (JSON.parse((await visit()).body.toString()) as { error: string }).error;
    expect(await readErrorCode()).toBe("tunnel_not_found");
    const agent = await connect(wireBytes, { subdomain });
    expect(await readErrorCode()).toBe("tunnel_not_found");
    agent.socket?.close();
  });
});
