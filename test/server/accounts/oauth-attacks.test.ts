/** Attacks by an identity provider, or by a party between the provider and the service. */
import { exportSPKI, generateKeyPair, importJWK, SignJWT, type CryptoKey } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PROVIDER_ANSWER_MAX_BYTES } from "../../../workers/identity/providers/calls.ts";
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
  api = await startApi({ kind: "maliciousProvider" });
  provider = await startMaliciousProvider(api.fakePorts.identityProvider);
  origin = `http://localhost:${api.server.port}`;
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  await api.stop();
});
beforeEach(() => {
  provider.overrides = {};
  provider.email = newEmail();
});

const isCallback = ({ pathname }: URL) => pathname.endsWith("/callback");

/** Signs in up to the provider's redirect to the callback, which the browser has not followed yet. */
async function startSignIn(browser: CookieBrowser): Promise<URL> {
  const { location } = await browser.followRedirects(
    `${origin}/auth/oauth/idp_a/start`,
    isCallback,
  );
  return location!;
}

async function signIn(): Promise<Visit> {
  const browser = new CookieBrowser();
  return browser.open(await startSignIn(browser));
}

function waitForLoggedFailure(requestId: string): Promise<string> {
  const find = () =>
    api.server.output
      .split("\n")
      .find((line) => line.includes("provider_failed") && line.includes(requestId));
  return waitUntil(() => Promise.resolve(find()));
}

const toOutcome = ({ status, headers }: Visit) => [status, headers.get("underpass-error")];
const SIGNED_IN = [302, null];

async function expectNoAccount(visit: Visit): Promise<void> {
  expect(visit.location).toBeNull();
  expect(visit.headers.getSetCookie().join()).not.toContain("qnt_refresh");
  expect(await api.sql("select 1 from users where email = $1", [provider.email])).toEqual([]);
}

describe("an ID token is accepted when it is", () => {
  test.each(["RS256", "ES256", "EdDSA"])("signed with %s", async (alg) => {
    await provider.rotateKey(alg);
    expect(toOutcome(await signIn())).toEqual(SIGNED_IN);
  });

  test("for this service among others, with azp", async () => {
    provider.overrides = {
      claims: (claims) => ({ ...claims, aud: ["x", "client"], azp: "client" }),
    };
    expect(toOutcome(await signIn())).toEqual(SIGNED_IN);
  });

  test("without the address, which is then requested", async () => {
    provider.overrides = overrideClaims({ email: undefined });
    expect(toOutcome(await signIn())).toEqual(SIGNED_IN);
    expect(provider.requestedPaths.at(-1)).toBe("/userinfo");
  });

  test("signed with a newer key than the cached ones, which are then fetched again", async () => {
    await signIn();
    await provider.rotateKey();
    provider.requestedPaths.length = 0;
    expect(toOutcome(await signIn())).toEqual(SIGNED_IN);
    expect(toOutcome(await signIn())).toEqual(SIGNED_IN);
    expect(provider.requestedPaths.filter((path) => path === "/keys")).toHaveLength(1);
  });
});

const seconds = () => Math.floor(Date.now() / 1000);
const encodePart = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const createUnsigned = (alg: string) => (claims: Claims) =>
  Promise.resolve(`${encodePart({ alg, kid: provider.key.kid })}.${encodePart(claims)}.`);
const signWithMac = (claims: Claims, key: Uint8Array) =>
  new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: provider.key.kid }).sign(key);
const toBytes = (text: string) => new TextEncoder().encode(text);
const overrideClaims = (change: Claims): ProviderOverrides => ({
  claims: (claims) => ({ ...claims, ...change }),
});

async function signWith(claims: Claims, key: CryptoKey, header: object): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: "RS256", ...header }).sign(key);
}
const generateForeignKey = () => generateKeyPair("RS256", { extractable: true });

describe("an ID token is refused when", () => {
  const attacks: [string, () => ProviderOverrides][] = [
    ["its algorithm is none", () => ({ idToken: createUnsigned("none") })],
    ["its algorithm is None", () => ({ idToken: createUnsigned("None") })],
    ["its signature is missing", () => ({ idToken: createUnsigned("RS256") })],
    [
      "its MAC has the client secret as its key",
      () => ({ idToken: (c) => signWithMac(c, toBytes(provider.secret)) }),
    ],
    [
      "its MAC has the public key as its key",
      () => ({
        async idToken(claims) {
          const key = (await importJWK(provider.key.jwk, "RS256")) as CryptoKey;
          return signWithMac(claims, toBytes(await exportSPKI(key)));
        },
      }),
    ],
    [
      "another key signed it",
      () => ({
        idToken: async (c) =>
          signWith(c, (await generateForeignKey()).privateKey, { kid: provider.key.kid }),
      }),
    ],
    [
      "an unknown key signed it",
      () => ({
        idToken: async (c) => signWith(c, (await generateForeignKey()).privateKey, { kid: "x" }),
      }),
    ],
    [
      "it contains its own key",
      () => ({
        async idToken(claims) {
          const { privateKey } = await generateForeignKey();
          return signWith(claims, privateKey, { jwk: provider.key.jwk, jku: "http://evil.test" });
        },
      }),
    ],
    [
      "its header has an unknown critical extension",
      () => ({
        idToken: async (c) =>
          (await signWith(c, provider.key.privateKey, { kid: provider.key.kid })).replace(
            /^[^.]+/,
            encodePart({ alg: "RS256", kid: provider.key.kid, crit: ["x"], x: 1 }),
          ),
      }),
    ],
    [
      "it was modified",
      () => ({
        idToken: async (c) =>
          (await signWith(c, provider.key.privateKey, { kid: provider.key.kid })).replace(
            /\.[^.]+\./,
            `.${encodePart({ ...c, sub: "another user" })}.`,
          ),
      }),
    ],
    ["it is not a token", () => ({ idToken: () => Promise.resolve("x.y.z") })],
    ["it is missing", () => ({ idToken: () => Promise.resolve(undefined) })],
    ["another issuer made it", () => overrideClaims({ iss: "https://evil.test" })],
    ["it has no issuer", () => overrideClaims({ iss: undefined })],
    ["it is for another audience", () => overrideClaims({ aud: "other" })],
    ["it has no audience", () => overrideClaims({ aud: undefined })],
    ["it has another audience as well", () => overrideClaims({ aud: ["client", "other"] })],
    [
      "another of its audiences is the authorized party",
      () => overrideClaims({ aud: ["client", "x"], azp: "x" }),
    ],
    ["another client is the authorized party", () => overrideClaims({ azp: "other" })],
    ["it has expired", () => overrideClaims({ exp: seconds() - 60 })],
    ["it has no expiry", () => overrideClaims({ exp: undefined })],
    ["its expiry is a string", () => overrideClaims({ exp: "9999999999" })],
    ["it was issued in the future", () => overrideClaims({ iat: seconds() + 600 })],
    ["it has no time of issue", () => overrideClaims({ iat: undefined })],
    ["it is not valid yet", () => overrideClaims({ nbf: seconds() + 600 })],
    ["it has another nonce", () => overrideClaims({ nonce: "x".repeat(43) })],
    ["it has no nonce", () => overrideClaims({ nonce: undefined })],
    ["it has no subject", () => overrideClaims({ sub: undefined })],
    ["its subject is empty", () => overrideClaims({ sub: "" })],
    ["its subject is a number", () => overrideClaims({ sub: 1 })],
    ["its subject contains a NUL", () => overrideClaims({ sub: "a\0b" })],
    ["its subject contains half of a character", () => overrideClaims({ sub: "a\ud800" })],
    ["its subject is too long", () => overrideClaims({ sub: "x".repeat(1_000) })],
    [
      "the address belongs to another subject",
      () => ({
        ...overrideClaims({ email: undefined }),
        userinfo: { sub: "another user", email: provider.email, email_verified: true },
      }),
    ],
  ];
  test.each(attacks)("%s", async (_, createOverrides) => {
    provider.overrides = createOverrides();
    const visit = await signIn();
    expect(toOutcome(visit)).toEqual([503, "unavailable"]);
    await expectNoAccount(visit);
  });

  test.each([
    ["verified only by the user info", { email_verified: undefined }, { email_verified: false }],
    ["not verified", { email_verified: false }, {}],
    ["verified by a string", { email_verified: "true" }, {}],
    ["verified by a number", { email_verified: 1 }, {}],
    ["a list", { email: ["a@example.com"] }, {}],
  ])("its address is %s", async (_, claims, userinfo) => {
    const sub = `of ${provider.email}`;
    provider.overrides = {
      ...overrideClaims(claims),
      userinfo: { sub, email: provider.email, ...userinfo },
    };
    const visit = await signIn();
    expect(toOutcome(visit)).toEqual([403, "email_not_verified"]);
    await expectNoAccount(visit);
  });
});

describe("a provider with an invalid response is unavailable:", () => {
  type Answer = NonNullable<ProviderOverrides["responses"]>[string];
  const page: Answer = (response) => void response.end("<h1>no</h1>");
  const serverError: Answer = (response) => void response.writeHead(500).end();
  const redirect: Answer = (response) =>
    void response.writeHead(302, { location: `${provider.issuer}/other` }).end();
  const tooLarge: Answer = (response) =>
    json(response, { keys: [], access_token: "x".repeat(PROVIDER_ANSWER_MAX_BYTES) });
  const closeConnection: Answer = (response) => void response.socket?.destroy();
  const answers: [string, Answer][] = [
    ["a page", page],
    ["a failure", serverError],
    ["a redirect", redirect],
    ["an answer that is too large", tooLarge],
    ["a connection that is closed", closeConnection],
    ["an array", (response) => json(response, [])],
    ["nothing", (response) => json(response, null)],
  ];
  const cases = ["/token", "/keys", "/userinfo"].flatMap((path) =>
    answers.map(([name, answer]) => [`${name} at ${path}`, path, answer] as const),
  );
  test.each(cases)("%s", async (_, path, answer) => {
    if (path === "/keys") await provider.rotateKey();
    provider.overrides = { responses: { [path]: answer }, ...overrideClaims({ email: undefined }) };
    const visit = await signIn();
    expect(toOutcome(visit)).toEqual([503, "unavailable"]);
    expect(provider.requestedPaths).not.toContain("/other");
    await expectNoAccount(visit);
  });

  test("and the log has the failure with the request id, but not the response", async () => {
    const idToken = () => Promise.resolve("not-a-token-but-secret");
    provider.overrides = { idToken };
    const { headers, body } = await signIn();
    const id = headers.get("underpass-request-id")!;
    expect(await waitForLoggedFailure(id)).toContain("Invalid JWT");
    expect(api.server.output).not.toContain("but-secret");
    expect(body).not.toContain("JWT");
  });

  test.each<[string, Record<string, string>, string]>([
    ["an error", {}, "the provider answered invalid_client"],
    [
      "a challenge",
      { "www-authenticate": 'Basic realm="x"' },
      "the provider answered with status 401: it does not accept the credentials",
    ],
  ])(
    "one that refuses the client secret with %s, which the log says",
    async (_, headers, cause) => {
      const refuseSecret: Answer = (response) => {
        for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
        json(response, { error: "invalid_client" }, 401);
      };
      provider.overrides = { responses: { "/token": refuseSecret } };
      const visit = await signIn();
      expect(toOutcome(visit)).toEqual([503, "unavailable"]);
      const id = visit.headers.get("underpass-request-id")!;
      expect(JSON.parse(await waitForLoggedFailure(id))).toMatchObject({ cause });
    },
  );
});

describe("a callback is refused that", () => {
  test("is from another issuer", async () => {
    provider.overrides = { iss: "https://evil.test" };
    const visit = await signIn();
    expect(toOutcome(visit)).toEqual([400, "invalid_request"]);
    await expectNoAccount(visit);
  });

  test("has a code of another sign-in: the provider requires its verifier", async () => {
    const attackerBrowser = new CookieBrowser();
    const attackerAnswer = await startSignIn(attackerBrowser);
    const browser = new CookieBrowser();
    const answer = await startSignIn(browser);
    answer.searchParams.set("code", attackerAnswer.searchParams.get("code")!);
    expect(toOutcome(await browser.open(answer))).toEqual([400, "invalid_request"]);
  });

  test("belongs to the other provider", async () => {
    const browser = new CookieBrowser();
    const answer = await startSignIn(browser);
    answer.pathname = "/auth/oauth/idp_b/callback";
    expect(toOutcome(await browser.open(answer))).toEqual([400, "invalid_request"]);
  });
});

describe("a sign-in that another host of the site began, and whose cookie it has set, is not finished", () => {
  const COOKIE = "underpass-oauth";

  async function startAsAttacker(): Promise<{ answer: URL; cookie: string }> {
    const browser = new CookieBrowser();
    const answer = await startSignIn(browser);
    return { answer, cookie: browser.cookie("localhost", COOKIE)! };
  }

  test("in a browser with a session, which stays", async () => {
    const victim = new CookieBrowser();
    expect(toOutcome(await victim.open(await startSignIn(victim)))).toEqual(SIGNED_IN);
    const session = victim.cookie("localhost", "qnt_refresh");
    provider.email = newEmail();
    const { answer, cookie } = await startAsAttacker();
    victim.setCookie("localhost", COOKIE, cookie);
    const visit = await victim.open(answer);
    expect(toOutcome(visit)).toEqual([400, "invalid_request"]);
    await expectNoAccount(visit);
    expect(victim.cookie("localhost", "qnt_refresh")).toBe(session);
    // The user's own attempt may replace the session.
    expect(toOutcome(await victim.open(await startSignIn(victim)))).toEqual(SIGNED_IN);
  });

  test.each(["first", "last"])("beside the browser's own, which it sends %s", async (place) => {
    const victim = new CookieBrowser();
    await startSignIn(victim);
    const { answer, cookie } = await startAsAttacker();
    const both = [cookie, victim.cookie("localhost", COOKIE)!];
    if (place === "first") both.reverse();
    victim.setCookie("localhost", COOKIE, both.join(`; ${COOKIE}=`));
    const visit = await victim.open(answer);
    expect(toOutcome(visit)).toEqual([400, "invalid_request"]);
    await expectNoAccount(visit);
  });
});

/** Signs in until the server reads the provider's metadata again, with this change, and has no others. */
async function signInWithMetadata(change: object): Promise<Visit> {
  await signIn();
  // A token with an unknown key makes the server read the metadata again.
  await provider.rotateKey();
  const metadata = { ...provider.metadata, ...change };
  const path = "/.well-known/openid-configuration";
  provider.overrides = { responses: { [path]: (response) => json(response, metadata) } };
  return signIn();
}

const start = async () =>
  toOutcome(await new CookieBrowser().open(`${origin}/auth/oauth/idp_a/start`));

test.each([
  ["no authorization endpoint", { authorization_endpoint: undefined }],
  ["a script as its authorization endpoint", { authorization_endpoint: "javascript:alert(1)" }],
  ["no token endpoint", { token_endpoint: undefined }],
  ["a token endpoint that is no URL", { token_endpoint: "/token" }],
  ["no keys", { jwks_uri: undefined }],
])("metadata with %s is not used, and not remembered", async (_, change) => {
  expect(toOutcome(await signInWithMetadata(change))).toEqual([503, "unavailable"]);
  expect(await start()).toEqual([503, "unavailable"]);
  provider.overrides = {};
  expect(toOutcome(await signIn())).toEqual(SIGNED_IN);
});

test("a provider with another issuer than configured, or one that is unreachable, is not used", async () => {
  const other = { issuer: `${provider.issuer}/other` };
  expect(toOutcome(await signInWithMetadata(other))).toEqual([503, "unavailable"]);
  expect(await start()).toEqual([503, "unavailable"]);
  provider.overrides = {};
  await provider.stop();
  try {
    expect(await start()).toEqual([503, "unavailable"]);
  } finally {
    await provider.start();
  }
  expect(toOutcome(await signIn())).toEqual(SIGNED_IN);
});
