/** `Strict-Transport-Security` on a server whose public URLs have https: on its own answers, and on no others. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startRawOrigin, OK, type RawOrigin } from "../../harness/tunnel/origin.ts";
import {
  startTunnelOwner,
  type OwnedTunnel,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { exchange, findHeader } from "../../harness/tunnel/raw-http.ts";

let owned: TunnelOwner;
let origin: RawOrigin;
let shop: OwnedTunnel;
beforeAll(async () => {
  [owned, origin] = await Promise.all([
    startTunnelOwner({ kind: "public" }),
    startRawOrigin(() => OK),
  ]);
  shop = await owned.expose("transport-security", origin.port);
});
afterAll(async () => {
  await owned.stop();
  await origin.stop();
});

const NAME = "strict-transport-security";
const YEAR = "max-age=31536000";

test("every answer of the API asks for TLS: results, pages and errors", async () => {
  for (const path of ["/", "/health", "/tunnels", "/nothing", "/.well-known/jwks.json"]) {
    const { headers } = await owned.api.anonymous.get(path);
    expect([path, headers.get(NAME)]).toEqual([path, YEAR]);
  }
});

test("so do the pages of the edge, but not the answers of a local server", async () => {
  expect(findHeader((await shop.visit("/")).headers, NAME)).toBeUndefined();
  const own = "max-age=5; includeSubDomains";
  origin.respond = () => `HTTP/1.1 200 OK\r\n${NAME}: ${own}\r\ncontent-length: 0\r\n\r\n`;
  expect(findHeader((await shop.visit("/")).headers, NAME)).toBe(own);
  await shop.put("policy", { actions: [{ kind: "deny", path_prefix: "/" }] });
  const refused = await shop.visit("/");
  expect([refused.status, findHeader(refused.headers, NAME)]).toEqual([403, YEAR]);
});

test("a customer's domain is left to the customer", async () => {
  const domain = "transport-security.example";
  const { status, headers } = await exchange(
    owned.api.server.port,
    `GET / HTTP/1.1\r\nHost: ${domain}\r\n\r\n`,
  );
  expect([status, findHeader(headers, NAME)]).toEqual([404, undefined]);
});
