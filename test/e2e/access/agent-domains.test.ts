/** `--url` with a custom domain: the agent serves the tunnel that the domain leads to, or the domain gets a new one. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expose, type ExposeOptions } from "../../../agent/expose.ts";
import type { HttpTunnel } from "../../../agent/tunnel/http-tunnel.ts";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { startResolver, type Resolver } from "../../harness/fakes/resolver.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";

let api: TestApi;
let resolver: Resolver;
let owner: Person;
let origin: RawOrigin;
let token: Buffer;

beforeAll(async () => {
  [api, origin] = await Promise.all([startApi(), startRawOrigin()]);
  resolver = await startResolver(api.fakePorts.resolver);
  owner = await api.owner();
  token = Buffer.from((await mintToken(owner, { tunnelQuota: 50 })).wireBytes, "base64");
});
afterAll(async () => {
  await origin.stop();
  await resolver[Symbol.asyncDispose]();
  await api.stop();
});

const start = (options: ExposeOptions) =>
  expose({ port: origin.port, server: api.server.url, token, ...options });

async function claim(domain: string): Promise<CustomDomain> {
  return (await owner.post<CustomDomain>("/domains", { domain })).body;
}

async function verify(domain: string): Promise<CustomDomain> {
  const { id, verificationToken } = await claim(domain);
  resolver.records[`_svc-challenge.${domain}`] = [verificationToken];
  return (await owner.post<CustomDomain>(`/domains/${id}/verify`)).body;
}

async function visit(host: string): Promise<number> {
  const request = `GET / HTTP/1.1\r\nHost: ${host}\r\nAccept: application/json\r\n\r\n`;
  return (await exchange(api.server.port, request)).status;
}

describe("an agent that asks for a verified domain", () => {
  test("serves it at once, at a new tunnel, and at the same one the next time", async () => {
    await verify("app.agent-domains.example");
    const first = await start({ url: "https://app.agent-domains.example" });
    expect(first.url).toBe(`http://app.agent-domains.example:${api.server.port}`);
    expect(await visit("app.agent-domains.example")).toBe(200);
    await first.close();
    await using second = await start({ url: "app.agent-domains.example" });
    expect([second.url, second.tunnelId]).toEqual([first.url, first.tunnelId]);
    expect(await visit("app.agent-domains.example")).toBe(200);
  });

  test("is given a domain with a token for all names, as `underpass login` gets one", async () => {
    await verify("login.agent-domains.example");
    const { wireBytes } = await mintToken(owner, { allowedSubdomains: ["*"] });
    const options = { url: "https://login.agent-domains.example", token: wireBytes };
    await using _ = await start(options);
    expect(await visit("login.agent-domains.example")).toBe(200);
  });

  test("serves the tunnel that a member has bound it to, with its project", async () => {
    const { id } = await verify("bound.agent-domains.example");
    await owner.post("/projects", { name: "Agent domains", slug: "agent-domains" });
    const { body } = await owner.post<{ id: string }>("/tunnels", {
      localPort: 1,
      subdomain: "bound",
      projectSlug: "agent-domains",
    });
    await owner.put(`/domains/${id}/bind`, { tunnel_id: body.id });
    await using agent = await start({ url: "https://bound.agent-domains.example" });
    expect(agent.tunnelId).toBe(body.id);
    expect(await visit("bound.agent-domains.example")).toBe(200);
    expect(await visit("bound-agent-domains.localhost")).toBe(200);
    const elsewhere = start({ url: "https://bound.agent-domains.example", project: "default" });
    await expect(elsewhere).rejects.toMatchObject({ reason: "domain_in_use" });
  });

  test("is one of two that start at the same time", async () => {
    await verify("race.agent-domains.example");
    const both = await Promise.allSettled([
      start({ url: "https://race.agent-domains.example" }),
      start({ url: "https://race.agent-domains.example" }),
    ]);
    const ids = new Set(
      both.flatMap((agent) => (agent.status === "fulfilled" ? agent.value.tunnelId : [])),
    );
    expect(ids.size).toBe(1);
    expect(await visit("race.agent-domains.example")).toBe(200);
    for (const agent of both) if (agent.status === "fulfilled") await agent.value.close();
  });

  test("reports the tunnel's own URL when a member has moved the domain and the agent reconnects", async () => {
    const { id } = await verify("moved.agent-domains.example");
    await using agent = await start({ url: "https://moved.agent-domains.example" });
    const { name, agentId } = (agent.events as HttpTunnel).welcome!;
    await owner.delete(`/domains/${id}/bind`);
    const reconnected = new Promise<{ url: string }>((resolve) =>
      agent.events.once("reconnected", resolve),
    );
    await waitUntil(async () => {
      const { status } = await owner.delete(`/connections/${agentId}`);
      return status === 200;
    });
    expect((await reconnected).url).toBe(`http://${name}.localhost:${api.server.port}`);
    const { body } = await owner.get<CustomDomain[]>("/domains");
    expect(body.find((domain) => domain.id === id)?.boundTunnelId).toBeNull();
  });
});

describe("an agent is refused", () => {
  const refusal = async (options: ExposeOptions) => {
    const error: unknown = await start(options).catch((thrown: unknown) => thrown);
    const { reason, message } = error as { reason: string; message: string };
    return { reason, message };
  };

  test("for a domain that is not verified, or another organization's", async () => {
    await claim("new.agent-domains.example");
    expect(await refusal({ url: "https://new.agent-domains.example" })).toEqual({
      reason: "domain_not_verified",
      message: "new.agent-domains.example is not verified yet",
    });
    await verify("foreign.agent-domains.example");
    const stranger = await api.owner();
    const bytes = Buffer.from((await mintToken(stranger)).wireBytes, "base64");
    expect(await refusal({ url: "https://foreign.agent-domains.example", token: bytes })).toEqual({
      reason: "domain_not_found",
      message: "the organization has no domain foreign.agent-domains.example",
    });
  });

  test("with a restricted token, for a domain that leads to no tunnel yet", async () => {
    await verify("restricted.agent-domains.example");
    const scope = { allowedSubdomains: ["only-this"] };
    const bytes = Buffer.from((await mintToken(owner, scope)).wireBytes, "base64");
    const options = { url: "https://restricted.agent-domains.example", token: bytes };
    expect((await refusal(options)).reason).toBe("forbidden");
    expect(await visit("restricted.agent-domains.example")).toBe(404);
  });

  test("for a name below that of a tunnel", async () => {
    expect(await refusal({ url: "https://a.b.localhost" })).toEqual({
      reason: "invalid_request",
      message: "a tunnel's host is a name and .localhost, such as shop.localhost",
    });
  });

  test("for a host of the service itself", async () => {
    expect(await refusal({ url: "https://api.localhost" })).toEqual({
      reason: "invalid_request",
      message: "api.localhost is a host of the service itself",
    });
  });
});

test("--url names a tunnel of the service too, with its project", async () => {
  await owner.post("/projects", { name: "Agent URLs", slug: "agent-urls" });
  const args = ["http", String(origin.port), "--server", api.server.url, "--token-file", "TOKEN"];
  const url = `http://shop-agent-urls.localhost:${api.server.port}`;
  await using agent = await runAgent([...args, "--url", url, "--project", "agent-urls", "--json"], {
    token,
  });
  expect((await agent.event("ready")).url).toBe(url);
  expect(await visit("shop-agent-urls.localhost")).toBe(200);
});

test("an https URL at a server whose public URLs are http is served with a notice that names the URL", async () => {
  const args = ["http", String(origin.port), "--server", api.server.url, "--token-file", "TOKEN"];
  const url = "https://url-scheme.localhost";
  await using agent = await runAgent([...args, "--url", url, "--json"], { token });
  const served = `http://url-scheme.localhost:${api.server.port}`;
  expect((await agent.event("ready")).url).toBe(served);
  const { message } = await agent.event("notice");
  expect(message).toContain(`visitors must use ${served}`);
});

test("the command says what to do about a domain that is not verified", async () => {
  await claim("advice.agent-domains.example");
  const args = ["http", String(origin.port), "--server", api.server.url, "--token-file", "TOKEN"];
  await using agent = await runAgent([...args, "--url", "https://advice.agent-domains.example"], {
    token,
  });
  expect(await agent.exit).toBe(1);
  expect(agent.stderr).toMatch(/advice\.agent-domains\.example is not verified yet\n.*TXT record/);
});
