import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatRoute, readRoutes, requestStatus, type Route } from "../../harness/server/routes.ts";
import { newAddress, startApi, type Reply, type TestApi } from "../../harness/server/api.ts";

const ON = { AUTH_RATE_LIMIT: "on" };
const BURST = 5;

interface Limited {
  error: string;
  retry_after_seconds: number;
}

/** A request that costs the server little, and counts like any other. */
const attempt = (api: TestApi, headers: Record<string, string> = {}) =>
  api.anonymous.send<Limited>("POST", "/auth/resend-verify-otp", {
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ email: "unknown@example.com" }),
  });
const readStatusFrom = async (api: TestApi, forwarded: string) =>
  (await attempt(api, { "x-forwarded-for": forwarded })).status;

describe("without a trusted proxy", () => {
  let api: TestApi;
  let firstBurst: Reply<Limited>[];
  beforeAll(async () => {
    api = await startApi({ env: ON });
    firstBurst = await Promise.all(Array.from({ length: 20 }, () => attempt(api)));
  });
  afterAll(() => api.stop());
  const exhaust = () => Promise.all(Array.from({ length: BURST }, () => attempt(api)));

  test("an address may send five requests at once to /auth, whatever headers it forges", async () => {
    expect(firstBurst.filter(({ status }) => status === 200)).toHaveLength(BURST);
    const forgeries: Record<string, string>[] = [
      {},
      { "x-forwarded-for": "192.0.2.1" },
      { "X-FORWARDED-FOR": "192.0.2.1, 192.0.2.2" },
      { x_forwarded_for: "192.0.2.1" },
      { "cf-connecting-ip": "192.0.2.1" },
      { "CF-Connecting-IP": "192.0.2.1" },
      { "cf-connecting-ipv6": "2001:db8::1" },
      { cf_connecting_ip: "192.0.2.1" },
      { "cf-pseudo-ipv4": "192.0.2.1" },
      { "x-real-ip": "192.0.2.1" },
      { "X-Real-Ip": "192.0.2.1" },
      { "true-client-ip": "192.0.2.1" },
      { "x-client-ip": "192.0.2.1" },
      { "x-cluster-client-ip": "192.0.2.1" },
      { forwarded: "for=192.0.2.1" },
      { "cf-blob": '{"clientIp":"192.0.2.1"}' },
      { host: "api.localhost" },
    ];
    await exhaust();
    // They are concurrent, because another request is accepted after twelve seconds.
    const answers = await Promise.all(forgeries.map((forged) => attempt(api, forged)));
    for (const [n, { status, body, headers }] of answers.entries()) {
      expect([forgeries[n], status, body.error]).toEqual([forgeries[n], 429, "rate_limited"]);
      expect(body.retry_after_seconds).toBeGreaterThanOrEqual(1);
      expect(body.retry_after_seconds).toBeLessThanOrEqual(12);
      expect(headers.get("retry-after")).toBe(String(body.retry_after_seconds));
    }
  });

  test("all public routes of /auth, and the setup, share one bucket, from which signed-in callers are exempt", async () => {
    await exhaust();
    const routes = (await readRoutes(api)).filter(({ path }) => /^\/(auth\/|setup$)/.test(path));
    expect(routes.length).toBeGreaterThan(25);
    const outcomes = routes.map(async (route) => {
      const body = route.requestBody?.content["application/json"]?.example;
      return [formatRoute(route), await requestStatus(route, api.anonymous, {}, body)];
    });
    expect(await Promise.all(outcomes)).toEqual(
      routes.map((route) => [
        formatRoute(route),
        OTHER_STATUSES[formatRoute(route)] ?? (isForSignedIn(route) ? 401 : 429),
      ]),
    );
  });
});

test.each([
  ["/auth/oauth/idp_a/callback", BURST],
  ["/edge-auth/callback", 120],
])(
  "a sign-in through a provider can be completed later when its %s is refused",
  async (path, burst) => {
    await using api = await startApi({ kind: "public" });
    const address = newAddress();
    const callback = () =>
      api.anonymous.send<Limited>("GET", `${path}?code=x&state=12345678`, {
        headers: { accept: "application/json", "x-forwarded-for": address },
      });
    const replies = await Promise.all(Array.from({ length: burst + 20 }, callback));
    const refused = replies.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    for (const { headers } of refused) {
      expect([headers.has("retry-after"), headers.getSetCookie()]).toEqual([true, []]);
    }
    const admitted = replies.filter(({ status }) => status !== 429);
    expect(admitted.length).toBeGreaterThanOrEqual(burst);
    for (const { headers } of admitted) {
      expect(headers.getSetCookie()).toEqual([expect.stringContaining("Max-Age=0")]);
    }
  },
);

describe("renewals", () => {
  let api: TestApi;
  beforeAll(async () => void (api = await startApi({ kind: "public" })));
  afterAll(() => api.stop());
  const renew = (cookie: string) =>
    api.anonymous.send<Limited>("POST", "/auth/refresh", { headers: { cookie } });
  const renewOften = (cookie: string, times: number) =>
    Promise.all(Array.from({ length: times }, () => renew(cookie)));

  test("are counted by session: each page that is opened renews it, and an office shares an address", async () => {
    const person = await api.owner();
    const { cookie } = await api.logIn(person.email, person.password);
    await Promise.all(Array.from({ length: BURST }, () => attempt(api)));
    expect((await attempt(api)).status).toBe(429);
    const renewals = await renewOften(person.cookie, 60);
    expect(renewals.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(20);
    const refused = renewals.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]!.body).toMatchObject({ error: "rate_limited", retry_after_seconds: 2 });
    expect((await renew(cookie)).status).toBe(200);
  });

  test("with a cookie that this service did not issue are counted by address", async () => {
    const statuses = (await renewOften(`qnt_refresh=${crypto.randomUUID()}.secret.proof`, 10)).map(
      ({ status }) => status,
    );
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(BURST);
    expect(new Set(statuses.slice(BURST))).toEqual(new Set([429]));
  });
});

test.each([
  ["GET", "/auth/cli/request?code=BCDF-GHJK", undefined],
  ["POST", "/auth/cli/authorize", { device_code: "BCDF-GHJK" }],
  ["POST", "/auth/cli/deny", { device_code: "BCDF-GHJK" }],
])("guesses at the codes of machines are counted by user: %s %s", async (method, path, body) => {
  await using api = await startApi({ kind: "public" });
  const [guesser, another] = [await api.owner(), await api.owner()];
  const guess = (by = guesser) =>
    by.send<Limited>(method, path, {
      headers: { "content-type": "application/json", "x-forwarded-for": newAddress() },
      ...(body && { body: JSON.stringify(body) }),
    });
  const replies = await Promise.all(Array.from({ length: 60 }, () => guess()));
  const refused = replies.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThanOrEqual(20);
  expect(refused[0]!.body).toMatchObject({ error: "rate_limited", retry_after_seconds: 2 });
  const compared = replies.filter(({ body: { error } }) => error === "invalid_code");
  expect(compared).toHaveLength(60 - refused.length);
  expect(await guess(another)).toMatchObject({ status: 400, body: { error: "invalid_code" } });
});

const isForSignedIn = ({ security }: Route) => security.some((scheme) => "accessToken" in scheme);

const OTHER_STATUSES: Record<string, number> = {
  // They have a larger bucket of their own.
  "GET /auth/providers": 200,
  "GET /setup": 200,
  "POST /auth/cli/poll": 410,
  // With a stolen access token, a password could be guessed there.
  "POST /auth/reauthenticate": 429,
  "POST /auth/mfa/disable": 429,
};

test("behind a trusted proxy the last entry that it added is the address", async () => {
  await using api = await startApi({ kind: "public" });
  const burst = Array.from({ length: BURST }, (_, i) =>
    readStatusFrom(api, `10.0.0.${i}, 192.0.2.1`),
  );
  expect(new Set(await Promise.all(burst))).toEqual(new Set([200]));
  expect(await readStatusFrom(api, "10.0.0.9, 192.0.2.1")).toBe(429);
  expect(await readStatusFrom(api, "192.0.2.1:50123")).toBe(429);
  expect(await readStatusFrom(api, "192.0.2.2")).toBe(200);
});

test("an IPv6 address is counted by its /64, in any notation", async () => {
  await using api = await startApi({ kind: "public" });
  const network = [
    "2001:db8:1:2::1",
    "2001:DB8:1:2::ffff",
    "2001:0db8:0001:0002:aaaa:bbbb:cccc:dddd",
    "[2001:db8:1:2::5]:443",
    "2001:db8:1:2:0:0:0:7",
  ];
  const statuses = await Promise.all(network.map((address) => readStatusFrom(api, address)));
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(await readStatusFrom(api, "2001:db8:1:2:9999::1")).toBe(429);
  expect(await readStatusFrom(api, "2001:db8:1:3::1")).toBe(200);
  await Promise.all(Array.from({ length: BURST }, () => readStatusFrom(api, "::ffff:192.0.2.9")));
  expect(await readStatusFrom(api, "192.0.2.9")).toBe(429);
});

test("an account has a bounded number of passwords that wait to be hashed, from however many addresses", async () => {
  await using api = await startApi({ kind: "public" });
  const attempts = Array.from({ length: 40 }, () =>
    api.anonymous.send<Limited>("POST", "/auth/login", {
      headers: { "content-type": "application/json", "x-forwarded-for": newAddress() },
      body: JSON.stringify({ email: "hashed@example.com", password: "not the right password" }),
    }),
  );
  const replies = await Promise.all(attempts);
  const refused = replies.filter(({ status }) => status === 503);
  expect(refused.length).toBeGreaterThan(0);
  for (const { body, headers } of refused) {
    expect(body).toMatchObject({ error: "unavailable", retry_after_seconds: 2 });
    expect(headers.get("retry-after")).toBe("2");
  }
  expect(replies.filter(({ status }) => status === 401).length).toBe(40 - refused.length);
});
