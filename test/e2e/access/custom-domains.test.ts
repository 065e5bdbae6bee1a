/** Visitors reach a local server by a custom domain in the Host header, as browsers send it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { exchange, findHeader } from "../../harness/tunnel/raw-http.ts";
import { startResolver, type Resolver } from "../../harness/fakes/resolver.ts";

let resolver: Resolver;
let api: TestApi;
let owner: Person;
let origins: RawOrigin[];
let tunnels: ExposedTunnel[];

beforeAll(async () => {
  api = await startApi();
  resolver = await startResolver(api.fakePorts.resolver);
  owner = await api.owner();
  const token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
  const answering = (name: string) =>
    startRawOrigin(() => `HTTP/1.1 200 OK\r\ncontent-length: ${name.length}\r\n\r\n${name}`);
  origins = [await answering("shop"), await answering("blog")];
  tunnels = [];
  for (const [n, subdomain] of ["domains-shop", "domains-blog"].entries()) {
    const { port } = origins[n]!;
    tunnels.push(await expose({ server: api.server.url, token, port, subdomain }));
  }
});
afterAll(async () => {
  await Promise.all(tunnels.map((tunnel) => tunnel.close()));
  await Promise.all(origins.map((origin) => origin.stop()));
  await resolver[Symbol.asyncDispose]();
  await api.stop();
});

async function verified(domain: string): Promise<CustomDomain> {
  const { body } = await owner.post<CustomDomain>("/domains", { domain });
  resolver.records[`_svc-challenge.${body.domain}`] = [body.verificationToken];
  return (await owner.post<CustomDomain>(`/domains/${body.id}/verify`)).body;
}

const bind = (domain: CustomDomain, n: number) =>
  owner.send("PUT", `/domains/${domain.id}/bind`, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ tunnel_id: tunnels[n]!.tunnelId }),
  });

async function visit(host: string): Promise<string> {
  const { status, body } = await exchange(
    api.server.port,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nAccept: application/json\r\n\r\n`,
  );
  return status === 200 ? body.toString() : `${status}`;
}

test("a domain leads to its tunnel while it is bound, in any spelling of the host", async () => {
  const domain = await verified("www.shop.example");
  expect(await visit("www.shop.example")).toBe("404");
  await bind(domain, 0);
  // An isolate caches for two seconds that a name has no tunnel.
  await waitUntil(async () => (await visit("www.shop.example")) === "shop");
  for (const host of ["WWW.Shop.Example", "www.shop.example.", "www.shop.example:8080"]) {
    expect(await visit(host)).toBe("shop");
  }
  expect(origins[0]!.requests.at(-1)?.headers).toContainEqual(["host", "www.shop.example:8080"]);
  expect(await visit("shop.example")).toBe("404");
  expect(await visit("www.shop.example.localhost")).toBe("404");
});

test("a domain in another script is reached by its Punycode form", async () => {
  const domain = await verified("bücher.example");
  await bind(domain, 0);
  const { host } = new URL("http://BÜCHER.example");
  expect(await visit(host)).toBe("shop");
});

test("a domain that was moved, unbound or released no longer leads to the tunnel from the next request on", async () => {
  const domain = await verified("moving.example");
  const hostIs = async (expected: string) => {
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => visit("moving.example")));
    expect(outcomes).toEqual(Array(10).fill(expected));
  };
  for (let times = 0; times < 3; times++) {
    await bind(domain, 0);
    await hostIs("shop");
    await bind(domain, 1);
    await hostIs("blog");
  }
  await owner.delete(`/domains/${domain.id}/bind`);
  await hostIs("404");
  await bind(domain, 1);
  await waitUntil(async () => (await visit("moving.example")) === "blog");
  await owner.delete(`/domains/${domain.id}`);
  await hostIs("404");
});

test("a request whose body the previous tunnel has read can be retried", async () => {
  const domain = await verified("posting.example");
  await bind(domain, 0);
  expect(await visit("posting.example")).toBe("shop");
  await bind(domain, 1);
  const post = () =>
    exchange(
      api.server.port,
      "POST / HTTP/1.1\r\nHost: posting.example\r\nContent-Length: 5\r\n\r\nhello",
    );
  const first = await post();
  expect([first.status, findHeader(first.headers, "underpass-error")]).toEqual([
    503,
    "unavailable",
  ]);
  const second = await post();
  expect([second.status, second.body.toString()]).toEqual([200, "blog"]);
});
