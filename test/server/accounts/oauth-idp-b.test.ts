/** Third-party sign-in with a provider of OAuth 2, and the separation of two providers on one server. */
import { randomInt } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { newAddress, newEmail, startApi, type TestApi } from "../../harness/server/api.ts";
import { CookieBrowser, type Visit } from "../../harness/browser/cookie-browser.ts";
import {
  startMaliciousProvider,
  type MaliciousProvider,
} from "../../harness/fakes/malicious-provider.ts";
import { startOAuthProvider, type OAuthProvider } from "../../harness/fakes/oauth-provider.ts";

let idpA: MaliciousProvider;
let idpB: OAuthProvider;
let api: TestApi;
let origin: string;
let browser: CookieBrowser;

beforeAll(async () => {
  api = await startApi({ kind: "maliciousProvider" });
  idpA = await startMaliciousProvider(api.fakePorts.identityProvider);
  idpB = await startOAuthProvider(api.fakePorts.oauthProvider);
  origin = `http://localhost:${api.server.port}`;
});
afterAll(async () => {
  await idpA[Symbol.asyncDispose]();
  await idpB[Symbol.asyncDispose]();
  await api.stop();
});
beforeEach(() => {
  browser = new CookieBrowser();
});

let userId = 0;
function useNewUser(email = newEmail()): string {
  userId = randomInt(2 ** 32);
  idpB.user = { id: userId, login: "user", email: "shown@example.com" };
  idpB.emails = [
    { email: "second@example.com", primary: false, verified: true, visibility: null },
    { email, primary: true, verified: true, visibility: "private" },
  ];
  return email;
}

const isCallback = ({ pathname }: URL) => pathname.endsWith("/callback");

async function startSignIn(provider: "idp_a" | "idp_b", by = browser): Promise<URL> {
  const start = `${origin}/auth/oauth/${provider}/start?return_to=/tunnels`;
  return (await by.followRedirects(start, isCallback)).location!;
}

async function signIn(): Promise<Visit> {
  browser = new CookieBrowser();
  return browser.open(await startSignIn("idp_b"));
}

const toOutcome = ({ status, headers }: Visit) => [status, headers.get("underpass-error")];
const findUsers = (email: string) =>
  api.sql<{ id: string }>("select id from users where email = $1", [email]);

test("the primary address creates an account, which is identified by the user id", async () => {
  const email = useNewUser();
  const { location } = await signIn();
  expect([location?.pathname, [...location!.searchParams.keys()]]).toEqual([
    "/tunnels",
    ["oauth_token"],
  ]);
  const refreshed = await api.anonymous.send("POST", "/auth/refresh", {
    headers: { cookie: `qnt_refresh=${browser.cookie("localhost", "qnt_refresh")}` },
  });
  expect(refreshed.status).toBe(200);
  const [user] = await findUsers(email);
  const identities = await api.sql("select * from identities where user_id = $1", [user!.id]);
  expect(identities).toMatchObject([{ provider: "idp_b", subject: String(userId) }]);

  idpB.emails = [{ email: newEmail(), primary: true, verified: true }];
  expect((await signIn()).status).toBe(302);
  expect(await api.sql("select 1 from sessions where user_id = $1", [user!.id])).toHaveLength(2);
});

test("sends a User-Agent, accepts JSON, and sends the token in a header", async () => {
  useNewUser();
  idpB.headers.length = 0;
  await signIn();
  expect(idpB.headers).toHaveLength(2);
  for (const headers of idpB.headers) {
    expect(headers["user-agent"]).toBe("Underpass");
    expect(headers.accept).toBe("application/json");
    expect(headers.authorization).toMatch(/^Bearer /);
  }
});

test("an account with the address is linked, from both providers", async () => {
  const owner = await api.owner();
  useNewUser(owner.email);
  expect((await signIn()).status).toBe(302);
  idpA.email = owner.email;
  expect((await browser.open(await startSignIn("idp_a"))).status).toBe(302);
  const identities = await api.sql("select provider from identities where user_id = $1", [
    owner.userId,
  ]);
  expect(identities).toHaveLength(2);
});

test("twenty concurrent first sign-ins of one person at both providers create one account", async () => {
  const email = useNewUser();
  idpA.email = email;
  const attempts = [];
  for (let tab = 0; tab < 20; tab++) {
    const by = new CookieBrowser();
    attempts.push({ by, answer: await startSignIn(tab % 2 === 0 ? "idp_a" : "idp_b", by) });
  }
  const visits = await Promise.all(attempts.map(({ by, answer }) => by.open(answer)));
  expect(visits.map(({ status }) => status)).toEqual(visits.map(() => 302));
  const [user, ...others] = await findUsers(email);
  expect(others).toEqual([]);
  expect(await api.sql("select 1 from memberships where user_id = $1", [user!.id])).toHaveLength(1);
  expect(await api.sql("select 1 from identities where user_id = $1", [user!.id])).toHaveLength(2);
});

describe("without a verified primary address there is no account:", () => {
  const address = { email: "x@example.com", primary: true, verified: true };
  test.each([
    ["no addresses", []],
    ["an address that is not verified", [{ ...address, verified: false }]],
    [
      "another address that is verified",
      [
        { ...address, verified: false },
        { ...address, primary: false },
      ],
    ],
    ["an address that is not primary", [{ ...address, primary: false }]],
    ["an invalid address", [{ ...address, email: "x" }]],
  ])("%s", async (_, emails) => {
    useNewUser();
    idpB.emails = emails;
    const visit = await signIn();
    expect(toOutcome(visit)).toEqual([403, "email_not_verified"]);
    expect(visit.headers.getSetCookie().join()).not.toContain("qnt_refresh");
    expect(await findUsers(address.email)).toEqual([]);
  });
});

describe("an API with an invalid response is unavailable:", () => {
  test.each([
    ["a user without an id", { login: "x" }, undefined],
    ["a user whose id is empty", { id: "" }, undefined],
    ["a user whose id is a fraction", { id: 1.5 }, undefined],
    ["no user", null, undefined],
    ["addresses that are not a list", undefined, { message: "?" }],
    [
      "a verification that is a string",
      undefined,
      [{ email: "x@y.zz", primary: true, verified: "true" }],
    ],
  ])("%s", async (_, user, emails) => {
    useNewUser();
    if (user !== undefined) idpB.user = user;
    if (emails !== undefined) idpB.emails = emails;
    expect(toOutcome(await signIn())).toEqual([503, "unavailable"]);
  });
});

describe("a callback is refused that", () => {
  const REFUSED = [400, "invalid_request"];

  test.each([
    ["has no code", (answer: URL) => answer.searchParams.delete("code")],
    ["has another code", (answer: URL) => answer.searchParams.set("code", "x")],
    ["has no state", (answer: URL) => answer.searchParams.delete("state")],
    ["has another state", (answer: URL) => answer.searchParams.set("state", "x")],
    [
      "belongs to the other provider",
      (answer: URL) => (answer.pathname = "/auth/oauth/idp_a/callback"),
    ],
  ])("%s", async (_, tamper) => {
    useNewUser();
    const answer = await startSignIn("idp_b");
    tamper(answer);
    expect(toOutcome(await browser.open(answer))).toEqual(REFUSED);
    expect(browser.cookie("localhost", "underpass-oauth")).toBeUndefined();
  });

  test("has a code of another sign-in", async () => {
    useNewUser();
    const otherCode = (await startSignIn("idp_b", new CookieBrowser())).searchParams.get("code")!;
    const answer = await startSignIn("idp_b");
    answer.searchParams.set("code", otherCode);
    expect(toOutcome(await browser.open(answer))).toEqual(REFUSED);
  });

  test("is repeated", async () => {
    useNewUser();
    const answer = await startSignIn("idp_b");
    const cookie = browser.cookie("localhost", "underpass-oauth")!;
    expect((await browser.open(answer)).status).toBe(302);
    browser.setCookie("localhost", "underpass-oauth", cookie);
    expect(toOutcome(await browser.open(answer))).toEqual(REFUSED);
  });
});

test("a refusal of the provider redirects back with its code", async () => {
  const answer = await startSignIn("idp_b");
  answer.searchParams.delete("code");
  answer.searchParams.set("error", "access_denied");
  const { location } = await browser.open(answer);
  expect(location?.href).toBe(`${origin}/tunnels?oauth_error=access_denied`);
});

test("on a hosted server the redirect URI has the public name, the cookie is Secure, and five sign-ins at once are the limit", async () => {
  await using other = await startApi({ kind: "public" });
  const start = `http://localhost:${other.server.port}/auth/oauth/idp_b/start`;
  const from = { "x-forwarded-for": newAddress() };
  const moved = await browser.open(start, { ...from, "x-forwarded-host": "evil.test" });
  const publicOrigin = `https://underpass.example:${other.server.port}`;
  expect(moved.location?.origin).toBe(publicOrigin);
  const { location, headers } = await browser.open(`${start}?moved=1`, from);
  expect(location?.searchParams.get("redirect_uri")).toBe(
    `${publicOrigin}/auth/oauth/idp_b/callback`,
  );
  const [cookie = ""] = headers.getSetCookie();
  expect(cookie).toMatch(
    /^__Host-underpass-oauth=v1\.[^;]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  );

  const findLimited = async (url: string) => {
    const visits = Array.from({ length: 10 }, () =>
      browser.open(url, { ...from, accept: "text/html" }),
    );
    return (await Promise.all(visits)).find(({ status }) => status === 429)!;
  };
  const limited = await findLimited(start);
  expect(toOutcome(limited)).toEqual([429, "rate_limited"]);
  expect(limited.headers.get("content-type")).toMatch(/^text\/html/);
  expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await findLimited(start.replace("start", "callback"))).status).toBe(429);
  expect((await other.anonymous.get("/auth/providers")).body).toEqual({ providers: ["idp_b"] });
});

test("on https an attempt is accepted only from the cookie that no other host can set", async () => {
  await using secure = await startApi({ kind: "public" });
  const from = { "x-forwarded-for": newAddress() };
  const base = `http://localhost:${secure.server.port}/auth/oauth/idp_b`;
  const attacker = new CookieBrowser();
  const { location } = await attacker.open(`${base}/start?moved=1`, from);
  const attempt = attacker.cookie("localhost", "__Host-underpass-oauth")!;
  const finish = async (cookie: string) => {
    const url = `${base}/callback?code=x&state=${location!.searchParams.get("state")}`;
    return toOutcome(await new CookieBrowser().open(url, { ...from, cookie }));
  };
  expect(await finish(`underpass-oauth=${attempt}`)).toEqual([400, "invalid_request"]);
  // The provider does not run.
  expect(await finish(`__Host-underpass-oauth=${attempt}`)).toEqual([503, "unavailable"]);
});
