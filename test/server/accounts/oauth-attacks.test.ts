/** What a provider, or whoever stands between it and us, may try. */
import { exportSPKI, generateKeyPair, importJWK, SignJWT, type CryptoKey } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  PROVIDER_ANSWER_MAX_BYTES,
  PROVIDER_CALL_MAX_MS,
} from "../../../workers/identity/providers/calls.ts";
import { newEmail, startApi, waitUntil, type TestApi } from "../../harness/server/api.ts";
import { CookieBrowser, type Visit } from "../../harness/browser/cookie-browser.ts";
import {
  json,
  startMaliciousProvider,
  type Claims,
  type ProviderOverrides,
  type MaliciousProvider,
} from "../../harness/fakes/malicious-provider.ts";

let provider: MaliciousProvider;
let api: TestApi;
let origin: string;

beforeAll(async () => {
  provider = await startMaliciousProvider();
  api = await startApi({ env: provider.settings });
  origin = `http://localhost:${api.server.port}`;
});
afterAll(async () => {
  await api.stop();
  await provider[Symbol.asyncDispose]();
});
beforeEach(() => {
  provider.overrides = {};
  provider.email = newEmail();
});

const isCallback = ({ pathname }: URL) => pathname.endsWith("/callback");

/** Up to the provider's answer, which the browser has not followed yet. */
async function answerIn(browser: CookieBrowser): Promise<URL> {
  const { location } = await browser.followRedirects(
    `${origin}/auth/oauth/idp_a/start`,
    isCallback,
  );
  return location!;
}

async function signIn(): Promise<Visit> {
  const browser = new CookieBrowser();
  return browser.open(await answerIn(browser));
}

function failureLogged(requestId: string): Promise<string> {
  const find = () =>
    api.server.output
      .split("\n")
      .find((line) => line.includes("provider_failed") && line.includes(requestId));
  return waitUntil(() => Promise.resolve(find()));
}

const outcomeOf = ({ status, headers }: Visit) => [status, headers.get("underpass-error")];
const SIGNED_IN = [302, null];

async function expectNobody(visit: Visit): Promise<void> {
  expect(visit.location).toBeNull();
  expect(visit.headers.getSetCookie().join()).not.toContain("qnt_refresh");
  expect(await api.sql("select 1 from users where email = $1", [provider.email])).toEqual([]);
}

describe("an ID token is accepted when it is", () => {
  test.each(["RS256", "ES256", "EdDSA"])("signed with %s", async (alg) => {
    await provider.rotateKey(alg);
    expect(outcomeOf(await signIn())).toEqual(SIGNED_IN);
  });

  test("for this service among others, with azp", async () => {
    provider.overrides = {
      claims: (claims) => ({ ...claims, aud: ["x", "client"], azp: "client" }),
    };
    expect(outcomeOf(await signIn())).toEqual(SIGNED_IN);
  });

  test("without the address, which is then requested", async () => {
    provider.overrides = claim({ email: undefined });
    expect(outcomeOf(await signIn())).toEqual(SIGNED_IN);
    expect(provider.requestedPaths.at(-1)).toBe("/userinfo");
  });

  test("signed with a newer key than the cached ones, which are then fetched again", async () => {
    await signIn();
    await provider.rotateKey();
    provider.requestedPaths.length = 0;
    expect(outcomeOf(await signIn())).toEqual(SIGNED_IN);
    expect(outcomeOf(await signIn())).toEqual(SIGNED_IN);
    expect(provider.requestedPaths.filter((path) => path === "/keys")).toHaveLength(1);
  });
});

const seconds = () => Math.floor(Date.now() / 1000);
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const unsigned = (alg: string) => (claims: Claims) =>
  Promise.resolve(`${part({ alg, kid: provider.key.kid })}.${part(claims)}.`);
const mac = (claims: Claims, key: Uint8Array) =>
  new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: provider.key.kid }).sign(key);
const bytes = (text: string) => new TextEncoder().encode(text);
const claim = (change: Claims): ProviderOverrides => ({
  claims: (claims) => ({ ...claims, ...change }),
});

async function signWith(claims: Claims, key: CryptoKey, header: object): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: "RS256", ...header }).sign(key);
}
const foreignKey = () => generateKeyPair("RS256", { extractable: true });

describe("an ID token is refused when", () => {
  const attacks: [string, () => ProviderOverrides][] = [
    ["nobody signed it", () => ({ idToken: unsigned("none") })],
    ["nobody signed it, in capitals", () => ({ idToken: unsigned("None") })],
    ["its signature is missing", () => ({ idToken: unsigned("RS256") })],
    ["its MAC is by our secret", () => ({ idToken: (c) => mac(c, bytes(provider.secret)) })],
    [
      "its MAC is by the public key",
      () => ({
        async idToken(claims) {
          const key = (await importJWK(provider.key.jwk, "RS256")) as CryptoKey;
          return mac(claims, bytes(await exportSPKI(key)));
        },
      }),
    ],
    [
      "another key signed it",
      () => ({
        idToken: async (c) =>
          signWith(c, (await foreignKey()).privateKey, { kid: provider.key.kid }),
      }),
    ],
    [
      "an unknown key signed it",
      () => ({ idToken: async (c) => signWith(c, (await foreignKey()).privateKey, { kid: "x" }) }),
    ],
    [
      "it brings its key along",
      () => ({
        async idToken(claims) {
          const { privateKey } = await foreignKey();
          return signWith(claims, privateKey, { jwk: provider.key.jwk, jku: "http://evil.test" });
        },
      }),
    ],
    [
      "its header has rules that we don't know",
      () => ({
        idToken: async (c) =>
          (await signWith(c, provider.key.privateKey, { kid: provider.key.kid })).replace(
            /^[^.]+/,
            part({ alg: "RS256", kid: provider.key.kid, crit: ["x"], x: 1 }),
          ),
      }),
    ],
    [
      "it was changed",
      () => ({
        idToken: async (c) =>
          (await signWith(c, provider.key.privateKey, { kid: provider.key.kid })).replace(
            /\.[^.]+\./,
            `.${part({ ...c, sub: "somebody else" })}.`,
          ),
      }),
    ],
    ["it is none", () => ({ idToken: () => Promise.resolve("x.y.z") })],
    ["it is missing", () => ({ idToken: () => Promise.resolve(undefined) })],
    ["another issuer made it", () => claim({ iss: "https://evil.test" })],
    ["it has no issuer", () => claim({ iss: undefined })],
    ["it is for somebody else", () => claim({ aud: "somebody" })],
    ["it is for nobody", () => claim({ aud: undefined })],
    ["it is for others as well", () => claim({ aud: ["client", "somebody"] })],
    ["another of its clients got it", () => claim({ aud: ["client", "x"], azp: "x" })],
    ["another client got it", () => claim({ azp: "somebody" })],
    ["it is over", () => claim({ exp: seconds() - 60 })],
    ["it has no end", () => claim({ exp: undefined })],
    ["its end is a text", () => claim({ exp: "9999999999" })],
    ["it is of the future", () => claim({ iat: seconds() + 600 })],
    ["it has no beginning", () => claim({ iat: undefined })],
    ["it is not good yet", () => claim({ nbf: seconds() + 600 })],
    ["its nonce is another's", () => claim({ nonce: "x".repeat(43) })],
    ["it has no nonce", () => claim({ nonce: undefined })],
    ["it has no subject", () => claim({ sub: undefined })],
    ["its subject is empty", () => claim({ sub: "" })],
    ["its subject is a number", () => claim({ sub: 1 })],
    ["its subject is endless", () => claim({ sub: "x".repeat(1_000) })],
    [
      "the address is of another subject",
      () => ({
        ...claim({ email: undefined }),
        userinfo: { sub: "somebody", email: provider.email, email_verified: true },
      }),
    ],
  ];
  test.each(attacks)("%s", async (_, lies) => {
    provider.overrides = lies();
    const visit = await signIn();
    expect(outcomeOf(visit)).toEqual([503, "unavailable"]);
    await expectNobody(visit);
  });

  test.each([
    ["confirmed elsewhere", { email_verified: undefined }, { email_verified: false }],
    ["not confirmed", { email_verified: false }, {}],
    ["confirmed in other words", { email_verified: "true" }, {}],
    ["confirmed by a number", { email_verified: 1 }, {}],
    ["several", { email: ["a@example.com"] }, {}],
  ])("its address is %s", async (_, claims, userinfo) => {
    const sub = `of ${provider.email}`;
    provider.overrides = {
      ...claim(claims),
      userinfo: { sub, email: provider.email, ...userinfo },
    };
    const visit = await signIn();
    expect(outcomeOf(visit)).toEqual([403, "email_not_verified"]);
    await expectNobody(visit);
  });
});

describe("a provider with an invalid response is unavailable:", () => {
  type Answer = NonNullable<ProviderOverrides["responses"]>[string];
  const page: Answer = (response) => void response.end("<h1>no</h1>");
  const failure: Answer = (response) => void response.writeHead(500).end();
  const elsewhere: Answer = (response) =>
    void response.writeHead(302, { location: `${provider.issuer}/other` }).end();
  const endless: Answer = (response) =>
    json(response, { keys: [], access_token: "x".repeat(PROVIDER_ANSWER_MAX_BYTES) });
  const broken: Answer = (response) => void response.socket?.destroy();
  const answers: [string, Answer][] = [
    ["a page", page],
    ["a failure", failure],
    ["a redirect", elsewhere],
    ["an answer without end", endless],
    ["a connection that breaks", broken],
    ["an array", (response) => json(response, [])],
    ["nothing", (response) => json(response, null)],
  ];
  const cases = ["/token", "/keys", "/userinfo"].flatMap((path) =>
    answers.map(([name, answer]) => [`${name} at ${path}`, path, answer] as const),
  );
  test.each(cases)("%s", async (_, path, answer) => {
    if (path === "/keys") await provider.rotateKey();
    provider.overrides = { responses: { [path]: answer }, ...claim({ email: undefined }) };
    const visit = await signIn();
    expect(outcomeOf(visit)).toEqual([503, "unavailable"]);
    expect(provider.requestedPaths).not.toContain("/other");
    await expectNobody(visit);
  });

  test("and the log has the failure with the request id, but not the response", async () => {
    const idToken = () => Promise.resolve("not-a-token-but-secret");
    provider.overrides = { idToken };
    const { headers, body } = await signIn();
    const id = headers.get("underpass-request-id")!;
    expect(await failureLogged(id)).toContain("Invalid JWT");
    expect(api.server.output).not.toContain("but-secret");
    expect(body).not.toContain("JWT");
  });

  test("no response, or one that stops halfway", async () => {
    const silence: Answer = () => {};
    const pause: Answer = (response) =>
      void response.writeHead(200, { "content-type": "application/json" }).write('{"a":');
    const turns = [silence, pause];
    provider.overrides = { responses: { "/token": (response) => turns.pop()?.(response) } };
    const before = performance.now();
    const visits = await Promise.all([signIn(), signIn()]);
    expect(visits.map(outcomeOf)).toEqual(visits.map(() => [503, "unavailable"]));
    expect(performance.now() - before).toBeLessThan(5 * PROVIDER_CALL_MAX_MS);
  });

  test("one that refuses the client secret, which the log says", async () => {
    const refuse: Answer = (response) => json(response, { error: "invalid_client" }, 400);
    provider.overrides = { responses: { "/token": refuse } };
    const visit = await signIn();
    expect(outcomeOf(visit)).toEqual([503, "unavailable"]);
    const id = visit.headers.get("underpass-request-id")!;
    expect(await failureLogged(id)).toContain("the provider says invalid_client");
  });
});

describe("a callback is refused that", () => {
  test("is from another issuer", async () => {
    provider.overrides = { iss: "https://evil.test" };
    const visit = await signIn();
    expect(outcomeOf(visit)).toEqual([400, "invalid_request"]);
    await expectNobody(visit);
  });

  test("has a code of another sign-in: the provider requires its verifier", async () => {
    const thief = new CookieBrowser();
    const stolen = await answerIn(thief);
    const browser = new CookieBrowser();
    const answer = await answerIn(browser);
    answer.searchParams.set("code", stolen.searchParams.get("code")!);
    expect(outcomeOf(await browser.open(answer))).toEqual([400, "invalid_request"]);
  });

  test("belongs to the other provider", async () => {
    const browser = new CookieBrowser();
    const answer = await answerIn(browser);
    answer.pathname = "/auth/oauth/idp_b/callback";
    expect(outcomeOf(await browser.open(answer))).toEqual([503, "provider_not_configured"]);
  });
});

test("a provider with another issuer than configured, or one that is unreachable, is not used", async () => {
  for (const issuer of [`${provider.issuer}/other`, "http://127.0.0.1:9"]) {
    await using other = await startApi({ env: { ...provider.settings, IDP_A_ISSUER: issuer } });
    const start = `http://localhost:${other.server.port}/auth/oauth/idp_a/start`;
    expect(outcomeOf(await new CookieBrowser().open(start))).toEqual([503, "unavailable"]);
  }
});
