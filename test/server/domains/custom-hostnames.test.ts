/** The hosted service's custom hostnames at the platform, which follow the verified domains in the database. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { startApi, waitUntil, type Person, type TestApi } from "../../harness/server/api.ts";
import {
  startCustomHostnames,
  type FakeCloudflareApi,
} from "../../harness/fakes/custom-hostnames.ts";
import { startResolver, type Resolver } from "../../harness/fakes/resolver.ts";

let resolver: Resolver;
let platform: FakeCloudflareApi;
let api: TestApi;
let owner: Person;
beforeAll(async () => {
  [resolver, platform] = await Promise.all([startResolver(), startCustomHostnames()]);
  api = await startApi({ env: { DNS_OVER_HTTPS_URL: resolver.url, ...platform.settings } });
  owner = await api.owner();
});
afterAll(async () => {
  await api.stop();
  await Promise.all([resolver[Symbol.asyncDispose](), platform[Symbol.asyncDispose]()]);
});
beforeEach(() => {
  platform.failure = undefined;
  platform.before = () => Promise.resolve();
});

let names = 0;
async function createVerifiedDomain(): Promise<CustomDomain> {
  const domain = `hosted-${(names += 1)}.example`;
  const { body } = await owner.post<CustomDomain>("/domains", { domain });
  resolver.records[`_svc-challenge.${domain}`] = [body.verificationToken];
  return (await owner.post<CustomDomain>(`/domains/${body.id}/verify`)).body;
}

const hasHostname = (domain: string) => [...platform.hostnames.values()].includes(domain);
const isOutboxEmpty = async () => (await api.sql("select 1 from outbox")).length === 0;
const retry = async () => {
  await api.sql("update outbox set next_attempt_at = now()");
  await api.runCron();
};

test("the platform gets a custom hostname for a verified domain, not for a claim, until it is released", async () => {
  const calls = platform.calls.length;
  await owner.post("/domains", { domain: "claimed.example" });
  expect(platform.calls).toHaveLength(calls);
  const { id, domain } = await createVerifiedDomain();
  await waitUntil(() => Promise.resolve(hasHostname(domain)));
  await waitUntil(isOutboxEmpty);
  await owner.delete(`/domains/${id}`);
  await waitUntil(() => Promise.resolve(!hasHostname(domain)));
  await waitUntil(isOutboxEmpty);
});

test("binding a domain creates a missing custom hostname, and never a second one", async () => {
  const { id, domain } = await createVerifiedDomain();
  await waitUntil(isOutboxEmpty);
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  const bind = () =>
    owner.send("PUT", `/domains/${id}/bind`, {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ tunnel_id: tunnel.id }),
    });
  await bind();
  await waitUntil(isOutboxEmpty);
  expect([...platform.hostnames.values()].filter((name) => name === domain)).toHaveLength(1);

  platform.hostnames.clear();
  await owner.delete(`/domains/${id}/bind`);
  await bind();
  await waitUntil(() => Promise.resolve(hasHostname(domain)));
});

test("a hostname that only contains the domain is not taken for it", async () => {
  const otherId = crypto.randomUUID();
  platform.hostnames.set(otherId, `www.hosted-${names + 1}.example`);
  const { id, domain } = await createVerifiedDomain();
  await waitUntil(() => Promise.resolve(hasHostname(domain)));
  await owner.delete(`/domains/${id}`);
  await waitUntil(() => Promise.resolve(!hasHostname(domain)));
  expect(platform.hostnames.has(otherId)).toBe(true);
});

test("a domain is found among more subdomains of it than a page of the platform's list has", async () => {
  const apex = `hosted-${names + 1}.example`;
  for (let n = 0; n < 120; n++) platform.hostnames.set(crypto.randomUUID(), `w${n}.${apex}`);
  const { id } = await createVerifiedDomain();
  await waitUntil(() => Promise.resolve(hasHostname(apex)));
  await waitUntil(isOutboxEmpty);
  await owner.delete(`/domains/${id}`);
  await waitUntil(isOutboxEmpty);
  expect(hasHostname(apex)).toBe(false);
  expect(platform.hostnames.size).toBeGreaterThanOrEqual(120);
  platform.hostnames.clear();
});

test("a failure of the platform delays no request, is logged, and is retried", async () => {
  platform.failure = { status: 500, code: 1_000 };
  const { domain, verified: isVerified } = await createVerifiedDomain();
  expect(isVerified).toBe(true);
  await waitUntil(() =>
    Promise.resolve(api.server.output.includes("status 500, error codes 1000")),
  );
  expect(api.server.output).not.toContain(platform.settings.CF_API_TOKEN);
  expect(await api.sql("select kind from outbox")).toEqual([{ kind: "custom_hostname" }]);
  await retry();
  expect(hasHostname(domain)).toBe(false);

  platform.failure = undefined;
  await retry();
  expect(hasHostname(domain)).toBe(true);
  expect(await isOutboxEmpty()).toBe(true);
});

test("a release during the creation leaves no custom hostname", async () => {
  const released = Promise.withResolvers<void>();
  platform.before = (method) => (method === "POST" ? released.promise : Promise.resolve());
  const calls = platform.calls.length;
  const { id, domain } = await createVerifiedDomain();
  await waitUntil(() =>
    Promise.resolve(platform.calls.slice(calls).includes("POST custom_hostnames")),
  );
  await owner.delete(`/domains/${id}`);
  released.resolve();
  await waitUntil(isOutboxEmpty);
  expect(hasHostname(domain)).toBe(false);
});
