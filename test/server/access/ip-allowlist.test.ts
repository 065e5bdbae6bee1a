/** A tunnel's IP allowlist: set through the API, and enforced from the next request on. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { ALLOWED_CIDRS_MAX } from "../../../protocol/schemas/access/ip-allowlist.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken } from "../../harness/server/api.ts";
import { startRawOrigin, OK, type RawOrigin } from "../../harness/tunnel/origin.ts";
import {
  startTunnelOwner,
  findErrorCode,
  type OwnedTunnel,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { waitForCaptures } from "../../harness/tunnel/visited-tunnel.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";

interface Allowlist {
  id: string;
  cidrs: string[] | null;
}

let owned: TunnelOwner;
let origin: RawOrigin;
let shop: OwnedTunnel;
beforeAll(async () => {
  [owned, origin] = await Promise.all([
    startTunnelOwner({ kind: "public" }),
    startRawOrigin(() => OK),
  ]);
  shop = await owned.expose("allowlist", origin.port);
});
afterAll(async () => {
  await owned.stop();
  await origin.stop();
});
beforeEach(async () => {
  for (const setting of ["ip-allowlist", "auth", "maintenance", "policy"])
    await shop.remove(setting);
  origin.requests.length = 0;
});

const allow = (...cidrs: string[]) => shop.put("ip-allowlist", { cidrs });
const visitFrom = async (address: string, lines: Record<string, string> = {}) =>
  findErrorCode(await shop.visit("/", { "x-forwarded-for": address, ...lines }));
const read = async () =>
  (await owned.owner.get<Allowlist>(`/tunnels/${shop.id}/ip-allowlist`)).body;

describe("an allowlist", () => {
  test("is read back in canonical form, listed with the tunnel, and removed", async () => {
    expect(await read()).toEqual({ id: shop.id, cidrs: null });
    const cidrs = ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7/32"];
    const set = await allow("192.0.2.77/24", "2001:DB8:0::1/32", "198.51.100.7", "192.0.2.0/24");
    expect([set.status, set.body]).toEqual([200, { id: shop.id, cidrs }]);
    expect(await read()).toEqual({ id: shop.id, cidrs });
    expect((await shop.getListed()).allowedCidrs).toEqual(cidrs);
    expect((await shop.remove("ip-allowlist")).body).toEqual({ id: shop.id, cidrs: null });
    expect((await shop.getListed()).allowedCidrs).toBe(null);
  });

  test.each([
    ["no blocks", []],
    [
      "too many blocks",
      Array.from({ length: ALLOWED_CIDRS_MAX + 1 }, (_, at) => `10.0.${at}.0/24`),
    ],
    ["a prefix that is too long", ["192.0.2.0/33"]],
    ["a host name", ["example.com"]],
    ["an octal address", ["010.0.0.1"]],
    ["a number", [10]],
  ])("of %s is refused and changes nothing", async (_, cidrs) => {
    await allow("192.0.2.0/24");
    const reply = await shop.put("ip-allowlist", { cidrs });
    expect([reply.status, reply.body.error]).toEqual([400, "invalid_request"]);
    expect((await read()).cidrs).toEqual(["192.0.2.0/24"]);
  });

  test("is recorded in the audit log", async () => {
    await allow("192.0.2.0/24");
    await shop.remove("ip-allowlist");
    const { body } =
      await owned.owner.get<{ action: string; resourceId: string }[]>("/events?limit=2");
    expect(body.map(({ action }) => action)).toEqual([
      "tunnel_ip_allowlist_removed",
      "tunnel_ip_allowlist_set",
    ]);
  });

  test("cannot be set by viewers, nor by another organization", async () => {
    const path = `/tunnels/${shop.id}/ip-allowlist`;
    const viewer = await owned.api.colleague(owned.owner, "viewer");
    expect((await viewer.get(path)).status).toBe(200);
    expect((await viewer.put(path, { cidrs: ["192.0.2.0/24"] })).status).toBe(403);
    expect((await viewer.delete(path)).status).toBe(403);
    const otherOwner = await owned.api.owner();
    expect((await otherOwner.get(path)).status).toBe(404);
    expect((await otherOwner.put(path, { cidrs: ["192.0.2.0/24"] })).status).toBe(404);
    expect((await otherOwner.delete(path)).status).toBe(404);
  });
});

describe("a visitor", () => {
  test("is allowed only from a block of the list, from the next request on", async () => {
    expect(await visitFrom("203.0.113.9")).toBe("passed");
    await allow("192.0.2.0/24", "2001:db8::/32");
    for (const address of ["192.0.2.1", "192.0.2.255", "::ffff:192.0.2.1", "2001:db8:ffff::1"]) {
      expect([address, await visitFrom(address)]).toEqual([address, "passed"]);
    }
    for (const address of ["192.0.3.1", "203.0.113.9", "::ffff:203.0.113.9", "2001:db9::1"]) {
      expect([address, await visitFrom(address)]).toEqual([address, "forbidden"]);
    }
    expect(origin.requests).toHaveLength(5);
    await shop.remove("ip-allowlist");
    expect(await visitFrom("203.0.113.9")).toBe("passed");
  });

  test("is allowed from an IPv4 block that is written as IPv6", async () => {
    const set = await allow("::ffff:192.0.2.77/120", "::ffff:c633:6407");
    expect(set.body).toEqual({ id: shop.id, cidrs: ["192.0.2.0/24", "198.51.100.7/32"] });
    for (const address of ["192.0.2.1", "::ffff:192.0.2.1", "198.51.100.7"]) {
      expect([address, await visitFrom(address)]).toEqual([address, "passed"]);
    }
    expect(await visitFrom("198.51.100.8")).toBe("forbidden");
    expect(await visitFrom("::ffff:192.0.3.1")).toBe("forbidden");
  });

  test("is refused with 403 and a reason, before it is asked for a password", async () => {
    await shop.put("auth", { username: "ann", password: "open sesame" });
    await allow("192.0.2.0/24");
    const refused = await shop.visit("/", {
      "x-forwarded-for": "203.0.113.9",
      accept: "text/html",
    });
    expect([refused.status, findErrorCode(refused)]).toEqual([403, "forbidden"]);
    expect(refused.body.toString()).toContain("from your network");
    // The edge checks visitors itself now. A changed list takes effect at once all the same.
    for (let n = 0; n < 3; n++) {
      expect(await visitFrom("192.0.2.9")).toBe("unauthorized");
      expect(await visitFrom("203.0.113.9")).toBe("forbidden");
    }
    await allow("203.0.113.0/24");
    expect(await visitFrom("192.0.2.9")).toBe("forbidden");
    expect(await visitFrom("203.0.113.9")).toBe("unauthorized");
  });

  test("gets the maintenance response first, from any address", async () => {
    await allow("192.0.2.0/24");
    await shop.put("maintenance");
    expect(await visitFrom("203.0.113.9")).toBe("maintenance");
    expect(await visitFrom("192.0.2.9")).toBe("maintenance");
  });

  test("is refused before it is asked for a token, whatever the path, and also with a WebSocket", async () => {
    await shop.put("policy", {
      actions: [{ kind: "jwt_validation" }, { kind: "deny", path_prefix: "/admin" }],
    });
    await allow("192.0.2.0/24");
    for (let n = 0; n < 2; n++) {
      const from = { "x-forwarded-for": "203.0.113.9" };
      const refused = await shop.visit("/admin", from);
      expect(refused.body.toString()).toContain("from your network");
      const handshake = {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      };
      expect(findErrorCode(await shop.visit("/", { ...from, ...handshake }))).toBe("forbidden");
      expect(await visitFrom("192.0.2.9")).toBe("unauthorized");
    }
    expect(origin.requests).toEqual([]);
  });

  test("is refused before it is counted", async () => {
    await shop.put("policy", { actions: [{ kind: "rate_limit", requests_per_minute: 1 }] });
    await allow("192.0.2.0/24");
    for (let n = 0; n < 5; n++) expect(await visitFrom("203.0.113.9")).toBe("forbidden");
    expect(await visitFrom("192.0.2.9")).toBe("passed");
  });

  test("of an address that is refused now can be replayed by the owner, who is no visitor", async () => {
    await shop.put("inspector", { allowReplay: true });
    const path = "/replayed-from-elsewhere";
    await shop.visit(path, { "x-forwarded-for": "203.0.113.9" });
    const [capture] = await waitForCaptures(owned.owner, { tunnel_id: shop.id, path }, 1);
    await allow("192.0.2.0/24");
    const replay = await owned.owner.post(`/inspector/${capture!.id}/replay`, {});
    expect(replay.status).toBe(200);
    expect(origin.requests).toHaveLength(2);
    expect(await visitFrom("203.0.113.9")).toBe("forbidden");
  });

  test("of a custom domain is checked against the same list", async () => {
    const { api, owner } = owned;
    const { body: domain } = await owner.post<{ id: string }>("/domains", {
      domain: "allowlist.example",
    });
    await api.sql("update domains set verified_at = now() where id = $1", [domain.id]);
    await owner.put(`/domains/${domain.id}/bind`, { tunnel_id: shop.id });
    const visit = async (address: string) =>
      findErrorCode(
        await exchange(
          api.server.port,
          `GET / HTTP/1.1\r\nHost: allowlist.example\r\nX-Forwarded-For: ${address}\r\n\r\n`,
        ),
      );
    expect(await visit("203.0.113.9")).toBe("passed");
    await allow("192.0.2.0/24");
    expect(await visit("203.0.113.9")).toBe("forbidden");
    expect(await visit("192.0.2.9")).toBe("passed");
    await owner.delete(`/domains/${domain.id}`);
  });
});

test("the relay receives the list of a TCP tunnel", async () => {
  const { api, owner } = owned;
  using relay = await RelayLink.connect(api.server);
  const { body } = await owner.post<Tunnel & ErrorBody>("/tunnels", {
    localPort: 1,
    protocol: "tcp",
  });
  const path = `/tunnels/${body.id}/ip-allowlist`;
  expect((await owner.put(path, { cidrs: ["192.0.2.0/24"] })).status).toBe(200);
  expect((await owner.get<Allowlist>(path)).body.cidrs).toEqual(["192.0.2.0/24"]);
  // A new link also brings the commands of the last minutes, about the tunnels of other tests.
  const listReceived = () =>
    relay.received.filter(
      (message) => message.type === "allowed_cidrs" && message.tunnelId === body.id,
    );
  // The relay has no association before an agent connects: the first ticket contains the list.
  expect(listReceived()).toEqual([]);
  const { wireBytes } = await mintToken(owner);
  const query = { port: 1, protocol: "tcp", subdomain: body.subdomain };
  const agent = await api.connectAgent(wireBytes, query);
  expect((await owner.put(path, { cidrs: ["198.51.100.0/24"] })).status).toBe(200);
  await owner.delete(path);
  await vi.waitFor(() => {
    expect(listReceived()).toMatchObject([{ cidrs: ["198.51.100.0/24"] }, { cidrs: null }]);
  }, WAIT_OPTIONS);
  agent.socket?.close();
});
