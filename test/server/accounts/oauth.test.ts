/** Third-party sign-in with a real OpenID Connect provider. Attacks by a provider are in oauth-attacks.test.ts. */
import { Secret, TOTP } from "otpauth";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  createCaller,
  newEmail,
  PASSWORD,
  startApi,
  waitUntil,
  type TestApi,
} from "../../harness/server/api.ts";
import { CookieBrowser } from "../../harness/browser/cookie-browser.ts";
import {
  startIdentityProvider,
  type IdentityProvider,
  type ProviderUser,
} from "../../harness/fakes/identity-provider.ts";

let provider: IdentityProvider;
let api: TestApi;
/** The service's primary host in its settings; `api.server.url` has another of its hosts. */
let origin: string;
let browser: CookieBrowser;

beforeAll(async () => {
  api = await startApi();
  provider = await startIdentityProvider(api.fakePorts.identityProvider);
  origin = `http://localhost:${api.server.port}`;
  await provider.register(`${origin}/auth/oauth/idp_a/callback`);
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  await api.stop();
});
beforeEach(() => {
  browser = new CookieBrowser();
});

function createUser(details: Partial<ProviderUser> = {}): ProviderUser {
  return { sub: crypto.randomUUID(), email: newEmail(), email_verified: true, ...details };
}

const isCallback = ({ pathname }: URL) => pathname.endsWith("/callback");
const START = "/auth/oauth/idp_a/start";

/** Signs in up to the provider's redirect to the callback, which the browser has not followed yet. */
async function startSignIn(person: ProviderUser | null, by = browser, start = START): Promise<URL> {
  provider.user = person;
  const { location } = await by.followRedirects(origin + start, isCallback);
  return location!;
}

async function signIn(person: ProviderUser | null, returnTo = "/tunnels") {
  const start = `${START}?return_to=${encodeURIComponent(returnTo)}`;
  return browser.open(await startSignIn(person, browser, start));
}

async function readAccount(token: string) {
  const caller = createCaller(api.server, { authorization: `Bearer ${token}` });
  return (await caller.get<{ user: { id: string; email: string } }>("/auth/me")).body.user;
}

/** In alphabetical order, because the events of one transaction have no other. */
async function listActions(userId: string): Promise<string[]> {
  const rows = await api.sql<{ action: string }>(
    "select action from audit_events where user_id = $1 order by action",
    [userId],
  );
  return rows.map(({ action }) => action);
}

test("a new user gets an account, an organization and a session, and is redirected to the requested page", async () => {
  const person = createUser();
  const { status, location, headers } = await signIn(person, "/tunnels?sort=name#top");
  expect(status).toBe(302);
  expect(location?.origin).toBe(origin);
  expect(location?.pathname).toBe("/tunnels");
  expect([location?.searchParams.get("sort"), location?.hash]).toEqual(["name", "#top"]);
  const token = location?.searchParams.get("oauth_token") ?? "";
  expect(await readAccount(token)).toMatchObject({ email: person.email });

  const cookies = headers.getSetCookie();
  expect(cookies.find((line) => line.startsWith("qnt_refresh="))).toMatch(/HttpOnly; SameSite=Lax/);
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("cache-control")).toBe("no-store");
  const refreshed = await api.anonymous.send("POST", "/auth/refresh", {
    headers: { cookie: `qnt_refresh=${browser.cookie("localhost", "qnt_refresh")}` },
  });
  expect(refreshed.status).toBe(200);
  const { id } = await readAccount(token);
  expect(await listActions(id)).toEqual(["account_created", "identity_linked", "session_created"]);
  expect(await api.readMailsTo(person.email!)).toEqual([]);
});

test("a returning user gets the same account, even after the address has changed", async () => {
  const person = createUser();
  const first = (await signIn(person)).location!.searchParams.get("oauth_token")!;
  for (const email of [undefined, newEmail()]) {
    browser = new CookieBrowser();
    const { location } = await signIn({ sub: person.sub, email, email_verified: false });
    const again = location!.searchParams.get("oauth_token")!;
    expect(await readAccount(again)).toEqual(await readAccount(first));
  }
});

test("a user without a password sets up a second factor after another sign-in at the provider", async () => {
  const person = createUser();
  const signInAgain = async () => {
    const token = (await signIn(person)).location!.searchParams.get("oauth_token")!;
    const { id } = await readAccount(token);
    const caller = createCaller(api.server, { authorization: `Bearer ${token}` });
    return { id, enroll: async () => (await caller.post("/auth/mfa/enroll")).status };
  };
  const old = await signInAgain();
  await api.sql(
    "update sessions set authenticated_at = now() - interval '1 hour' where user_id = $1",
    [old.id],
  );
  expect(await old.enroll()).toBe(401);
  expect(await (await signInAgain()).enroll()).toBe(200);
});

test("an existing account with the address is linked, retains its password, and is notified by email", async () => {
  const owner = await api.owner();
  const { location } = await signIn(createUser({ email: owner.email.toUpperCase() }));
  const token = location!.searchParams.get("oauth_token")!;
  expect((await readAccount(token)).id).toBe(owner.userId);
  expect((await api.logIn(owner.email, PASSWORD)).userId).toBe(owner.userId);
  expect(await listActions(owner.userId)).toContain("identity_linked");
  const mail = await waitUntil(async () =>
    (await api.readMailsTo(owner.email)).find((text) => text.includes("A new way to sign in")),
  );
  expect(mail).toContain(new URL(provider.issuer).host);
});

test("a pending sign-up by another person for the same address gets no access", async () => {
  const email = newEmail();
  await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  const code = await api.getMailedCode(email);
  const { location } = await signIn(createUser({ email }));
  const { id } = await readAccount(location!.searchParams.get("oauth_token")!);

  expect((await api.anonymous.post("/auth/login", { email, password: PASSWORD })).status).toBe(401);
  expect((await api.anonymous.post("/auth/verify-email-otp", { email, code })).status).toBe(400);
  expect(await listActions(id)).toEqual([
    "account_created",
    "email_verified",
    "identity_linked",
    "session_created",
  ]);
  expect(await api.sql("select 1 from memberships where user_id = $1", [id])).toHaveLength(1);
});

test("six concurrent first sign-ins of one person create one account and one organization", async () => {
  const person = createUser();
  const attempts = [];
  for (let tab = 0; tab < 6; tab++) {
    const by = new CookieBrowser();
    attempts.push({ by, answer: await startSignIn(person, by) });
  }
  const visits = await Promise.all(attempts.map(({ by, answer }) => by.open(answer)));
  expect(visits.map(({ status }) => status)).toEqual(visits.map(() => 302));
  const users = await api.sql<{ id: string }>("select id from users where email = $1", [
    person.email,
  ]);
  expect(users).toHaveLength(1);
  const { id } = users[0]!;
  expect(await api.sql("select 1 from memberships where user_id = $1", [id])).toHaveLength(1);
  expect(await api.sql("select 1 from identities where user_id = $1", [id])).toHaveLength(1);
  expect(await api.sql("select 1 from sessions where user_id = $1", [id])).toHaveLength(6);
  const actions = await listActions(id);
  expect(actions.filter((action) => action !== "session_created")).toEqual([
    "account_created",
    "identity_linked",
  ]);
});

test("another account of the provider with the same address is refused", async () => {
  const person = createUser();
  await signIn(person);
  browser = new CookieBrowser();
  const { status, body } = await signIn(createUser({ email: person.email }));
  expect([status, JSON.parse(body)]).toMatchObject([403, { error: "forbidden" }]);
});

test("the second factor is required before there is a session", async () => {
  const owner = await api.owner();
  const { body: pending } = await owner.post<{ secret_base32: string }>("/auth/mfa/enroll");
  const secret_base32 = pending.secret_base32;
  const code = new TOTP({ secret: Secret.fromBase32(secret_base32) }).generate();
  const { body } = await owner.post<{ recovery_codes: string[] }>("/auth/mfa/enroll/verify", {
    code,
    secret_base32,
  });
  const sessions = () => api.sql("select id from sessions where user_id = $1", [owner.userId]);
  const before = await sessions();

  const { status, location, headers } = await signIn(createUser({ email: owner.email }));
  expect([status, location?.pathname]).toEqual([302, "/tunnels"]);
  expect([...location!.searchParams.keys()]).toEqual(["mfa_challenge"]);
  expect(headers.getSetCookie().join()).not.toContain("qnt_refresh");
  expect(await sessions()).toEqual(before);
  const passed = await api.anonymous.post<{ access_token: string }>("/auth/login/mfa", {
    challenge_token: location!.searchParams.get("mfa_challenge"),
    recovery_code: body.recovery_codes[0],
  });
  expect(passed.status).toBe(200);
  expect((await readAccount(passed.body.access_token)).id).toBe(owner.userId);
});

describe("an address that the provider has not verified", () => {
  test.each([
    ["is not verified there", { email_verified: false }],
    ["has no statement whether it is verified", { email_verified: undefined }],
    ["is verified by a string", { email_verified: "true" as unknown as boolean }],
    ["is missing", { email: undefined }],
    ["is invalid", { email: "no-at-sign" }],
    ["has look-alike characters", { email: "ｐerson@example.com" }],
  ])("%s: no account, and no link", async (_, details) => {
    const { email, ...owner } = await api.owner();
    const { status, body } = await signIn(createUser({ email, ...details }));
    expect([status, JSON.parse(body)]).toMatchObject([403, { error: "email_not_verified" }]);
    const identities = await api.sql("select 1 from identities where user_id = $1", [owner.userId]);
    expect(identities).toEqual([]);
  });
});

test("an address with look-alike characters does not open the account that it resembles", async () => {
  const owner = await api.owner();
  const email = `\u{ff50}${owner.email.slice(1)}`;
  expect(email.normalize("NFKC")).toBe(owner.email);
  expect((await signIn(createUser({ email }))).status).toBe(403);
});

describe("a refusal of the provider", () => {
  test("redirects back with its code only", async () => {
    const { status, location } = await signIn(null, "/tunnels?a=b");
    expect([status, location?.href]).toEqual([
      302,
      `${origin}/tunnels?a=b&oauth_error=access_denied`,
    ]);
  });

  test("with an unknown code becomes server_error", async () => {
    const answer = await startSignIn(null);
    answer.searchParams.set("error", "<script>");
    const { location } = await browser.open(answer);
    expect(location?.href).toBe(`${origin}/?oauth_error=server_error`);
  });
});

describe("a callback is valid", () => {
  const refused = { error: "invalid_request" };

  test("once: the cookie is cleared, and the provider accepts no code twice", async () => {
    const answer = await startSignIn(createUser());
    const cookie = browser.cookie("localhost", "underpass-oauth")!;
    expect((await browser.open(answer)).status).toBe(302);
    expect(browser.cookie("localhost", "underpass-oauth")).toBeUndefined();
    const replay = await browser.open(answer);
    expect([replay.status, JSON.parse(replay.body)]).toMatchObject([400, refused]);
    browser.setCookie("localhost", "underpass-oauth", cookie);
    const repeated = await browser.open(answer);
    expect([repeated.status, JSON.parse(repeated.body)]).toMatchObject([400, refused]);
  });

  test("only in the browser that started the sign-in", async () => {
    const answer = await startSignIn(createUser());
    const victim = new CookieBrowser();
    expect((await victim.open(answer)).status).toBe(400);
    await startSignIn(createUser(), victim);
    expect((await victim.open(answer)).status).toBe(400);
  });

  test.each([
    ["no state", (answer: URL) => answer.searchParams.delete("state")],
    ["another state", (answer: URL) => answer.searchParams.set("state", "x".repeat(43))],
    ["an empty state", (answer: URL) => answer.searchParams.set("state", "")],
    ["two states", (answer: URL) => answer.searchParams.append("state", "x")],
    ["no code", (answer: URL) => answer.searchParams.delete("code")],
    ["two codes", (answer: URL) => answer.searchParams.append("code", "x")],
    ["another code", (answer: URL) => answer.searchParams.set("code", "x")],
    ["another issuer", (answer: URL) => answer.searchParams.set("iss", "http://evil.test")],
    ["no issuer", (answer: URL) => answer.searchParams.delete("iss")],
  ])("not with %s, and that ends the attempt", async (_, tamper) => {
    const answer = await startSignIn(createUser());
    tamper(answer);
    const { status, body } = await browser.open(answer);
    expect([status, JSON.parse(body)]).toMatchObject([400, refused]);
    expect(browser.cookie("localhost", "underpass-oauth")).toBeUndefined();
  });

  test("not with a cookie of another server", async () => {
    for (const forged of ["x", "v1.a.b.c", "%7B%7D"]) {
      const answer = await startSignIn(createUser());
      browser.setCookie("localhost", "underpass-oauth", forged);
      expect((await browser.open(answer)).status).toBe(400);
    }
  });
});

describe("starting", () => {
  test("sends the required parameters, and stores the attempt in a cookie", async () => {
    const { status, location, headers } = await browser.open(origin + START);
    expect([status, location?.origin]).toEqual([302, provider.issuer]);
    expect(Object.fromEntries(location!.searchParams)).toEqual({
      client_id: "underpass-test",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      redirect_uri: `${origin}/auth/oauth/idp_a/callback`,
      response_type: "code",
      scope: "openid email",
      state: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(
        /^underpass-oauth=v1\.[^;]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/,
      ),
    ]);
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  });

  test("on another host of the service redirects to the primary host, once", async () => {
    const { location } = await browser.open(`${api.server.url}${START}?return_to=/a`);
    expect(location?.href).toBe(`${origin}${START}?return_to=%2Fa&moved=1`);
    const secondVisit = await browser.open(
      `${api.server.url}${location!.pathname}${location!.search}`,
    );
    expect(secondVisit.location?.origin).toBe(provider.issuer);
  });

  test("trusts no header for the redirect URI", async () => {
    const forgeries: Record<string, string>[] = [
      { "x-forwarded-host": "evil.test" },
      { "x-forwarded-proto": "https", "x-forwarded-port": "444" },
      { forwarded: "host=evil.test" },
      { "x-original-host": "evil.test", origin: "https://evil.test" },
    ];
    for (const headers of forgeries) {
      const { location } = await browser.open(origin + START, headers);
      expect(location?.searchParams.get("redirect_uri")).toBe(
        `${origin}/auth/oauth/idp_a/callback`,
      );
    }
  });

  test.each(["//evil.test", "/\\evil.test", "https:evil.test", "javascript:alert(1)", "/%09/evil"])(
    "with the return path %s redirects to the start page",
    async (returnTo) => {
      const { location } = await signIn(createUser(), returnTo);
      expect([location?.origin, location?.pathname]).toEqual([origin, "/"]);
    },
  );
});

describe("a failure", () => {
  test("is a page for a browser that contains no parameter of the request", async () => {
    const injected = encodeURIComponent("<script>alert(1)</script>");
    const { status, body, headers } = await browser.open(
      `${origin}/auth/oauth/idp_a/callback?error=${injected}&error_description=${injected}&state=x`,
      { accept: "text/html,application/xhtml+xml" },
    );
    expect([status, headers.get("content-type")]).toEqual([400, "text/html; charset=utf-8"]);
    expect(headers.get("underpass-error")).toBe("invalid_request");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(body).toContain("The sign-in failed");
    expect(body).not.toContain("script");
  });
});

test("the list of providers is public", async () => {
  expect((await api.anonymous.get("/auth/providers")).body).toEqual({ providers: ["idp_a"] });
});

test.each(["start", "callback", "callback?code=x&state=y"])(
  "a provider that is not configured gives 503: %s",
  async (path) => {
    const { status, body } = await api.anonymous.get(`/auth/oauth/idp_b/${path}`);
    expect([status, body]).toMatchObject([503, { error: "provider_not_configured" }]);
  },
);

test("no secret of a sign-in is logged", async () => {
  const answer = await startSignIn(createUser());
  const { location } = await browser.open(answer);
  const { headers } = await browser.open(answer);
  const lastId = headers.get("underpass-request-id")!;
  await waitUntil(() => Promise.resolve(api.server.output.includes(lastId)));
  const secrets = ["code", "state"].map((name) => answer.searchParams.get(name)!);
  for (const secret of [...secrets, location!.searchParams.get("oauth_token")!]) {
    expect(api.server.output).not.toContain(secret);
  }
});
