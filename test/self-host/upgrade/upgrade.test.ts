/** A server with data of an earlier version starts on this one and serves all of it. The directory is the record. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expose } from "../../../agent/expose.ts";
import type { AccountSummary, SessionList } from "../../../protocol/schemas/accounts/accounts.ts";
import type { Billing } from "../../../protocol/schemas/billing.ts";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { MintedToken } from "../../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { getSocket, type TestApi } from "../../harness/server/api.ts";
import { CookieBrowser } from "../../harness/browser/cookie-browser.ts";
import {
  readRecord,
  startUpgraded,
  type TokenName,
  type UpgradedServer,
} from "../../harness/server/old-server.ts";
import { startRawOrigin } from "../../harness/tunnel/origin.ts";
import { basicAuthorization, findErrorCode } from "../../harness/tunnel/owned-tunnel.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import {
  buildDelivery,
  createEvent,
  PRICES,
  buildSubscription,
  type SubscriptionState,
} from "../../harness/fakes/payments.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { startEcho, openSocket } from "../../harness/relay/tcp/stack.ts";
import { readAll } from "../../harness/relay/tcp/tunnel-port.ts";
import { deliver } from "../../harness/fakes/vendor.ts";

const RECORD_DIR = join(import.meta.dirname, "71058ae");
const old = readRecord(RECORD_DIR);
const { notes, answers } = old;
const { password, ids, tokens } = notes;

let upgraded: UpgradedServer;
let api: TestApi;
beforeAll(async () => {
  upgraded = await startUpgraded(RECORD_DIR, old);
  ({ api } = upgraded);
});
afterAll(() => upgraded?.stop());

const visit = (host: string, path = "/", lines: Record<string, string> = {}) => {
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  return exchange(
    api.server.port,
    `GET ${path} HTTP/1.1\r\nHost: ${host}:${api.server.port}\r\n${head.join("")}\r\n`,
  );
};

test("the record has rows in every table of its version, and the migrations keep all of them", async () => {
  const { rowCounts } = upgraded.data;
  expect(rowCounts.size).toBe(28);
  expect([...rowCounts].filter(([, count]) => count === 0)).toEqual([]);
  expect(api.server.output).toMatch(/database: \d+ migrations applied/);
  // Delivered messages leave the outbox.
  for (const [table, count] of [...rowCounts].filter(([table]) => table !== "outbox")) {
    const [row] = await api.sql<{ n: number }>(`select count(*)::int as n from ${table}`);
    expect([table, row!.n >= count]).toEqual([table, true]);
  }
});

// These come first: later tests change the data.
describe.each(["ada", "ben"] as const)("the API answers %s as the old server did", (name) => {
  /** Logging in for this test adds events of its own. */
  const isLog = (path: string) => path.endsWith("/events") && !path.includes("receivers");

  test.each(Object.keys(answers[name]))("%s", async (path) => {
    const { status, body } = await upgraded[name].get<object>(path);
    expect(status).toBe(200);
    const before = answers[name][path] as { id: string }[];
    let now = upgraded.asRecorded(body);
    if (isLog(path)) {
      const known = new Set(before.map(({ id }) => id));
      now = (now as { id: string }[]).filter(({ id }) => known.has(id));
    }
    expect(now).toMatchObject(path === "/tunnels" ? before.map(withTcpUrl) : before);
  });

  /** Visitors of a TCP tunnel use a public port now, which is reserved when its agent connects. */
  const withTcpUrl = (tunnel: object) => {
    const { protocol, subdomain } = tunnel as Tunnel;
    const changed = { publicUrl: `tcp://${subdomain}.localhost`, publicPort: null };
    return protocol === "tcp" ? { ...tunnel, ...changed } : tunnel;
  };
});

test.each(Object.entries(notes.sums))("the time series has the day's %s", async (metric, sum) => {
  const { body } = await upgraded.ada.get<{ value: number }[]>(
    `/metrics/timeseries?metric=${metric}&window=24h`,
  );
  expect(body.reduce((total, { value }) => total + value, 0)).toBe(sum);
});

test("an organization's totals include tunnels that have ended", async () => {
  const { body } = await upgraded.ada.get<string>("/metrics/prometheus");
  const requests = /^underpass_requests_total\{.*2xx.*\} (\d+)$/m.exec(body)?.[1];
  const [tunnels] = await api.sql<{ n: number }>(
    "select sum((counters->>'requests:2xx')::int)::int as n from tunnel_counters where folded_at is null",
  );
  const [ended] = await api.sql<{ n: number }>(
    "select (counters->>'requests:2xx')::int as n from ended_counters",
  );
  expect(ended!.n).toBe(1);
  expect(Number(requests)).toBe(tunnels!.n + ended!.n);
});

test("a renamed class of objects keeps the directory of its first name", async () => {
  // The log-ins of this file went through rate limiters, a class that was once called AddressLimiter.
  const directories = await readdir(join(upgraded.data.dataDir, "objects"));
  expect(directories).toContain("underpass-AddressLimiter");
  expect(directories).not.toContain("underpass-RateLimiter");
  // Its objects had copies of rows, one for each host.
  expect(directories).not.toContain("underpass-Hostname");
});

test("its sessions are as fresh as their sign-in", async () => {
  expect(await api.sql("select 1 from sessions where authenticated_at > created_at")).toEqual([]);
});

test("every message in its outbox is delivered", async () => {
  expect(upgraded.data.rowCounts.get("outbox")).toBe(17);
  await api.sql("update outbox set next_attempt_at = now()");
  await api.runCron();
  const left = () => api.sql("select kind, payload, attempts from outbox");
  await expect.poll(left, WAIT_OPTIONS).toEqual([]);
});

describe("what people had begun can be completed", () => {
  test("a refresh cookie is renewed", async () => {
    const { ada: cookie } = notes.refreshCookies;
    const { status, body } = await api.anonymous.send<{ access_token: string }>(
      "POST",
      "/auth/refresh",
      { headers: { cookie } },
    );
    expect(status).toBe(200);
    const { body: account } = await upgraded
      .callerWith(body.access_token)
      .get<AccountSummary>("/auth/me");
    expect(account.user.email).toBe("ada@example.com");
    const { body: list } = await upgraded.ada.get<SessionList>("/auth/sessions");
    const [, sessionId] = /=([\w-]+)\./.exec(cookie)!;
    expect(list.sessions.map(({ id }) => id)).toContain(sessionId);
  });

  test("a sign-in that waits for its second factor takes a recovery code, once", async () => {
    const logIn = () =>
      api.anonymous.post("/auth/login/mfa", {
        challenge_token: notes.challenge,
        recovery_code: notes.recoveryCodes[0],
      });
    expect((await logIn()).status).toBe(200);
    expect((await logIn()).status).toBe(401);
  });

  test("an invitation is accepted", async () => {
    const email = "dee@example.com";
    await api.anonymous.post("/auth/signup", { email, password });
    await api.anonymous.post("/auth/verify-email-otp", {
      email,
      code: await api.getMailedCode(email),
    });
    const dee = await api.logIn(email, password);
    const { status, body } = await dee.post("/invitations/accept", {
      token: notes.invitationToken,
    });
    expect({ status, body }).toMatchObject({ status: 200, body: { id: ids.org, role: "admin" } });
  });

  test("a mailed code confirms an address", async () => {
    const email = "cyd@example.com";
    const { status } = await api.anonymous.post("/auth/verify-email-otp", {
      email,
      code: notes.code,
    });
    expect(status).toBe(200);
    expect((await api.logIn(email, password)).email).toBe(email);
  });

  test("a forgotten password is replaced", async () => {
    const newer = "another battery staple";
    const { status } = await api.anonymous.post("/auth/reset", {
      token: notes.resetToken,
      new_password: newer,
    });
    expect(status).toBe(200);
    upgraded.ben = await api.logIn("ben@example.com", newer);
    expect((await upgraded.ben.get<Billing>("/billing")).body).toMatchObject({
      plan: "team",
      cycle: "yearly",
    });
  });

  test("a subscription continues, and a repeated billing event changes nothing", async () => {
    const [row] = await api.sql<{ customer: string; heard: string }>(
      `select customer_id as customer, (select min(id) from billing_events) as heard
       from billing_customers join subscriptions using (org_id) where id = 'sub_ben'`,
    );
    const { customer, heard: processedEventId } = row!;
    const sendUpdate = async (state: Partial<SubscriptionState>, id?: string) => {
      const price = PRICES.team.yearly;
      const object = buildSubscription({
        id: "sub_ben",
        status: "active",
        price,
        customer,
        ...state,
      });
      upgraded.payments.subscriptions.set("sub_ben", object);
      const event = createEvent("customer.subscription.updated", object);
      const sent = buildDelivery({ ...event, ...(id !== undefined && { id }) });
      expect((await api.anonymous.send("POST", "/billing/webhook", sent)).status).toBe(200);
      return (await upgraded.ben.get<Billing>("/billing")).body;
    };
    expect(await sendUpdate({ status: "canceled" }, processedEventId)).toMatchObject({
      status: "active",
    });
    expect(await sendUpdate({ cancelAtPeriodEnd: true })).toMatchObject({
      status: "active",
      plan: "team",
      cancelAtPeriodEnd: true,
    });
  });

  test("a linked provider account signs in to the same user", async () => {
    const { oauth } = upgraded;
    oauth.user = { id: 4711, login: "eve" };
    oauth.emails = [{ email: "new@example.com", primary: true, verified: true }];
    const start = `http://localhost:${api.server.port}/auth/oauth/idp_b/start?return_to=/`;
    const hasToken = ({ searchParams }: URL) => searchParams.has("oauth_token");
    const { location } = await new CookieBrowser().followRedirects(start, hasToken);
    const eve = upgraded.callerWith(location!.searchParams.get("oauth_token")!);
    const { body } = await eve.get<AccountSummary>("/auth/me");
    expect(body.user.email).toBe("eve@example.com");
  });

  test("a machine collects its approved token, another one waits for approval", async () => {
    const { approved, waiting, waitingUserCode } = notes.devices;
    const poll = (device_code: string) =>
      api.anonymous.post<{ error: string; wire_bytes_b64: string }>("/auth/cli/poll", {
        device_code,
      });
    const wireBytes = /^[A-Za-z0-9+/]{100,}=*$/;
    expect((await poll(approved)).body.wire_bytes_b64).toMatch(wireBytes);
    const waitingPoll = poll(waiting);
    const { status } = await upgraded.ada.post("/auth/cli/authorize", {
      device_code: waitingUserCode,
    });
    expect(status).toBe(200);
    expect((await waitingPoll).body.wire_bytes_b64).toMatch(wireBytes);
  });

  test("a claimed domain is verified by the record that was published for it", async () => {
    const claims = answers.ada["/domains"] as CustomDomain[];
    const { id, domain, verificationToken } = claims.find(({ verified }) => !verified)!;
    upgraded.resolver.records[`_svc-challenge.${domain}`] = [verificationToken];
    const { body } = await upgraded.ada.post<CustomDomain>(`/domains/${id}/verify`);
    expect(body).toMatchObject({ domain, verified: true });
  });

  test("deliveries signed with the old secrets are accepted, and repeated ones are stored once", async () => {
    type Receiver = { id: string; validator: "code_host" | "generic_hmac_sha256"; kept: number };
    const receivers = answers.ada["/webhook-receivers"] as Receiver[];
    for (const receiver of receivers) {
      const { validator } = receiver;
      const body = JSON.stringify({ validator, n: 2 });
      const isRotated = validator === "generic_hmac_sha256";
      const secret = isRotated ? notes.rotatedReceiverSecret : notes.receiverSecret;
      for (const id of [`${validator}-2`, `${validator}-3`]) {
        const { status } = await deliver(api.server, receiver, {
          secret,
          body: id.endsWith("2") ? body : "{}",
          id,
        });
        expect(status).toBe(200);
      }
    }
    const { body } = await upgraded.ada.get<Receiver>(
      `/webhook-receivers/${receivers.find(({ validator }) => validator === "code_host")!.id}`,
    );
    expect(body.kept).toBe(3);
  });

  test("names stay reserved, released ones for a day", async () => {
    for (const subdomain of ["brand", "given-up", "later", "database"]) {
      const { status } = await upgraded.ben.post("/tunnels", { localPort: 1, subdomain });
      expect([subdomain, status]).toEqual([subdomain, 409]);
    }
  });
});

describe("agents reconnect with their old tokens", () => {
  const bytes = (name: TokenName) => Buffer.from(tokens[name], "base64");
  const refusal = async (name: TokenName, subdomain: string) =>
    (await api.connectAgent(tokens[name], { port: 1, subdomain })).code;

  test("and serve the same tunnels, behind the same gates and domains", async () => {
    const origin = await startRawOrigin();
    const serve = (name: TokenName, subdomain: string, project?: string) =>
      expose({
        server: api.server.url,
        token: bytes(name),
        port: origin.port,
        subdomain,
        ...(project !== undefined && { project }),
      });
    const agents = [
      await serve("laptop", "web"),
      await serve("laptop", "gated"),
      await serve("laptop", "members-only"),
      await serve("staging", "api", "staging"),
    ];
    expect(agents.slice(0, 3).map(({ tunnelId }) => tunnelId)).toEqual([
      ids.web,
      ids.gated,
      ids.signIn,
    ]);
    const visits = {
      web: await visit("web.localhost"),
      domain: await visit("shop.example"),
      staging: await visit("api-staging.localhost"),
      stranger: await visit("gated.localhost"),
      guest: await visit(
        "gated.localhost",
        "/",
        basicAuthorization("visitor", "a password of old"),
      ),
      denied: await visit(
        "gated.localhost",
        "/admin/x",
        basicAuthorization("visitor", "a password of old"),
      ),
      unknown: await visit("members-only.localhost"),
      maintained: await visit("later.localhost"),
      stopped: await visit("stopped.localhost"),
    };
    expect(
      Object.fromEntries(Object.entries(visits).map(([k, v]) => [k, findErrorCode(v)])),
    ).toEqual({
      web: "passed",
      domain: "passed",
      staging: "passed",
      stranger: "unauthorized",
      guest: "passed",
      denied: "forbidden",
      unknown: "unauthorized",
      maintained: "maintenance",
      stopped: "agent_offline",
    });
    expect(visits.maintained.body.toString()).toContain("Back at noon");
    expect(origin.requests.at(-1)?.headers).toContainEqual(["x-from", "gate"]);
    await Promise.all(agents.map((agent) => agent.close()));
    await origin.stop();
  });

  test("and a tunnel continues its counters", async () => {
    const before = answers.ada["/tunnels"] as Tunnel[];
    const requests = (list: Tunnel[]) => list.find(({ id }) => id === ids.web)!.totalRequests;
    const now = async () => requests((await upgraded.ada.get<Tunnel[]>("/tunnels")).body);
    await expect.poll(now, WAIT_OPTIONS).toBe(requests(before) + 2);
  });

  test("and a TCP tunnel that was only reserved is given its port", async () => {
    await using echo = await startEcho();
    const args = ["tcp", String(echo.port), "--subdomain", "database", "--json"];
    await using agent = await runAgent(
      [...args, "--server", api.server.url, "--token-file", "TOKEN"],
      { token: bytes("laptop") },
    );
    const ready = (await agent.event("ready")) as { tunnelId: string; publicPort: number };
    expect(ready.tunnelId).toBe(ids.tcp);
    const visitor = await openSocket(ready.publicPort);
    visitor.end("hello");
    expect(await readAll(visitor)).toEqual(Buffer.from("hello"));
  });

  test("and are refused what those tokens do not allow", async () => {
    expect(await refusal("revoked", "web")).toBe(4401);
    expect(await refusal("rotatedAway", "web")).toBe(4401);
    expect(await refusal("spent", "web")).toBe(4402);
    expect(await refusal("webOnly", "later")).toBe(4403);
    getSocket(await api.connectAgent(tokens.webOnly, { port: 1, subdomain: "web-2" })).close();
    getSocket(await api.connectAgent(tokens.rotated, { port: 1, subdomain: "another" })).close();
  });

  test("and a master key mints tokens", async () => {
    const { status, body } = await upgraded
      .callerWith(tokens.master)
      .post<MintedToken>("/projects/staging/tokens", { name: "another job" });
    expect(status).toBe(200);
    expect(body).toMatchObject({ projectSlug: "staging" });
  });
});
