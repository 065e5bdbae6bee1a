/** Certificates that the server obtains by itself, from an authority of the test. */
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createTemporaryDir } from "../../harness/directories.ts";
import {
  startCertificateAuthority,
  type CertificateAuthority,
} from "../../harness/fakes/certificate-authority.ts";
import { reservePorts } from "../../harness/ports.ts";
import { startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

let httpsPort: number;
let authority: CertificateAuthority;
let dataDir: string;
let api: TestApi;
let owner: Person;

const start = () =>
  startApi({
    dataDir,
    env: {
      SERVICE_DOMAIN: "tunnels.example",
      API_HOSTS: "api.example,127.0.0.1",
      HTTPS_PORT: String(httpsPort),
      HTTPS_HOST: "127.0.0.1",
      HTTP_REDIRECT_PORT: String(httpsPort + 1),
      ACME: "on",
      ACME_EMAIL: "operator@example.com",
      ACME_DIRECTORY_URL: authority.directoryUrl,
    },
  });

beforeAll(async () => {
  httpsPort = await reservePorts(2);
  authority = await startCertificateAuthority(httpsPort + 1);
  dataDir = await createTemporaryDir();
  api = await start();
  owner = await api.owner();
});
afterAll(async () => {
  await api.stop();
  await authority[Symbol.asyncDispose]();
});

/** @returns the status. Rejects when the server has no certificate for the host that this client trusts. */
async function visit(host: string, path = "/"): Promise<number | undefined> {
  const sent = requestHttps({
    ...{ host: "127.0.0.1", port: httpsPort, servername: host, ca: authority.root, path },
    ...{ headers: { host: `${host}:${httpsPort}` }, agent: false },
  });
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

const countOrders = (name: string) => authority.orders.filter((each) => each === name).length;
const createTunnel = (subdomain: string) => owner.post("/tunnels", { localPort: 1, subdomain });

test("the API has a certificate from the start, without any visit", async () => {
  await expect
    .poll(() => api.server.output, WAIT_OPTIONS)
    .toContain("a certificate for api.example was issued");
  expect(await visit("api.example", "/health")).toBe(200);
  expect(countOrders("api.example")).toBe(1);
});

test("a tunnel's first visitors wait for its certificate, for which there is one order", async () => {
  await createTunnel("shop");
  const statuses = await Promise.all([1, 2, 3].map(() => visit("shop.tunnels.example")));
  // It has no agent.
  expect(statuses).toEqual([502, 502, 502]);
  expect(await visit("SHOP.tunnels.example")).toBe(502);
  expect(countOrders("shop.tunnels.example")).toBe(1);
});

test("a long name gets a certificate, although it does not fit into a common name", async () => {
  const subdomain = "a".repeat(60);
  await createTunnel(subdomain);
  expect(await visit(`${subdomain}.tunnels.example`)).toBe(502);
});

test.each(["unknown.tunnels.example", "other.example", "a_b.tunnels.example"])(
  "no certificate is ordered for %s, which this server does not serve",
  async (host) => {
    await expect(visit(host)).rejects.toThrow();
    expect(countOrders(host)).toBe(0);
  },
);

test("a name that the authority refuses is not ordered again with each visit, and the log says why", async () => {
  await createTunnel("refused");
  authority.refused.add("refused.tunnels.example");
  await expect(visit("refused.tunnels.example")).rejects.toThrow();
  await expect(visit("refused.tunnels.example")).rejects.toThrow();
  expect(countOrders("refused.tunnels.example")).toBe(1);
  const line = /no certificate for refused\.tunnels\.example was issued: .*this name is refused/;
  await vi.waitUntil(() => line.test(api.server.output), WAIT_OPTIONS);
});

test("the server keeps its certificates, which only it can read, over a restart", async () => {
  const orders = [...authority.orders];
  await api.stop();
  api = await start();
  expect(await visit("shop.tunnels.example")).toBe(502);
  expect(await visit("api.example", "/health")).toBe(200);
  expect(authority.orders).toEqual(orders);
  const directory = join(dataDir, "certificates");
  for (const file of await readdir(directory)) {
    expect((await stat(join(directory, file))).mode & 0o777).toBe(0o600);
  }
});
