/** Attacks on an identity gate, on the redirect to the provider and on the way back. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { importJWK, SignJWT, type JWK } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ExposedTunnel } from "../../../agent/expose.ts";
import { createCaller } from "../../harness/server/api.ts";
import type { Visit } from "../../harness/browser/cookie-browser.ts";
import {
  COOKIE,
  startGatedVisits,
  TICKET_PATH,
  TunnelBrowser,
  type GatedVisits,
} from "../../harness/tunnel/gated-visits.ts";
import { findHeader, type Answer } from "../../harness/tunnel/raw-http.ts";

let visits: GatedVisits;
let tunnel: ExposedTunnel;
beforeAll(async () => {
  visits = await startGatedVisits();
  tunnel = await visits.exposeGated();
});
afterAll(() => visits?.[Symbol.asyncDispose]());
beforeEach(() => {
  visits.signInAs("ann@example.com");
  visits.origin.requests.length = 0;
});

const readStatusAndCode = ({ status, headers }: Answer) => [
  status,
  findHeader(headers, "underpass-error"),
];
const readPageStatusAndCode = ({ status, headers }: Visit) => [
  status,
  headers.get("underpass-error"),
];
const REFUSED = [401, "unauthorized"];
const PASSED = [200, undefined];
const showing = (pass: string) => `Cookie: ${COOKIE}=${pass}\r\n`;
const setsPass = ({ headers }: Pick<Visit, "headers">) =>
  headers.getSetCookie().some((line) => line.includes(COOKIE));

/** Signs in up to the redirect back from the provider. */
const callback = (browser: TunnelBrowser, to = tunnel) =>
  visits.followUntil(browser, to.url, "/edge-auth/callback");
/** Signs in up to the address on the tunnel's own host that sets the pass. */
const ticket = (browser: TunnelBrowser, to = tunnel) =>
  visits.followUntil(browser, to.url, TICKET_PATH);

describe("a response of the provider is valid", () => {
  test("once", async () => {
    const ann = new TunnelBrowser();
    const back = await callback(ann);
    expect((await ann.open(back)).location?.pathname).toBe(TICKET_PATH);
    expect(readPageStatusAndCode(await ann.open(back))).toEqual([400, "invalid_request"]);
  });

  test("once, also with the cookie of the attempt", async () => {
    const ann = new TunnelBrowser();
    const back = await callback(ann);
    const name = `underpass-visit-${back.searchParams.get("state")!.slice(0, 8)}`;
    const attemptCookie = ann.cookie("localhost", name)!;
    expect((await ann.open(back)).status).toBe(302);
    expect(ann.cookie("localhost", name)).toBeUndefined();
    ann.setCookie("localhost", name, attemptCookie);
    expect(readPageStatusAndCode(await ann.open(back))).toEqual([400, "invalid_request"]);
  });

  test("only in the browser that started the sign-in", async () => {
    const back = await callback(new TunnelBrowser());
    expect(readPageStatusAndCode(await new TunnelBrowser().open(back))).toEqual([
      400,
      "invalid_request",
    ]);
  });

  test.each(["", "x", "../../x", "a".repeat(5_000), "%0d%0aset-cookie:x", "<script>"])(
    "with its own state, not %j",
    async (state) => {
      const ann = new TunnelBrowser();
      const back = await callback(ann);
      back.searchParams.set("state", state);
      const refused = await ann.open(back);
      expect(readPageStatusAndCode(refused)).toEqual([400, "invalid_request"]);
      expect(refused.body).not.toContain("<script>");
      back.searchParams.delete("state");
      expect((await ann.open(back)).status).toBe(400);
    },
  );

  test("for visiting a tunnel, not for signing in to an account, nor the reverse", async () => {
    const ann = new TunnelBrowser();
    const back = await callback(ann);
    const atLogin = new URL(back);
    atLogin.pathname = "/auth/oauth/idp_a/callback";
    const name = `underpass-visit-${back.searchParams.get("state")!.slice(0, 8)}`;
    ann.setCookie("localhost", "underpass-oauth", ann.cookie("localhost", name)!);
    expect(readPageStatusAndCode(await ann.open(atLogin))).toEqual([400, "invalid_request"]);
    expect(await visits.api.sql("select 1 from users where email = 'ann@example.com'")).toEqual([]);
  });

  test("only while the tunnel has the gate", async () => {
    const other = await visits.exposeGated();
    const ann = new TunnelBrowser();
    const back = await callback(ann, other);
    await visits.remove(other.tunnelId);
    expect(readPageStatusAndCode(await ann.open(back))).toEqual([404, "not_found"]);
  });

  test("and its error message is shown as plain text, or not at all", async () => {
    const ann = new TunnelBrowser();
    const back = await callback(ann);
    back.searchParams.delete("code");
    back.searchParams.set("error", "<script>alert(1)</script>");
    back.searchParams.set("error_description", "<script>alert(2)</script>");
    const denied = await ann.open(back);
    expect(readPageStatusAndCode(denied)).toEqual([403, "forbidden"]);
    expect(denied.body).not.toContain("<script");
  });
});

describe("a ticket is valid", () => {
  test("for one of twenty concurrent requests", async () => {
    const ann = new TunnelBrowser();
    const url = await ticket(ann);
    const all = await Promise.all(Array.from({ length: 20 }, () => ann.open(url)));
    expect(all.filter(setsPass)).toHaveLength(1);
    const losers = all.filter((visit) => !setsPass(visit)).map(readPageStatusAndCode);
    expect(losers).toEqual(Array(19).fill([400, "invalid_token"]));
  });

  test("only on the host of its tunnel, also within an organization", async () => {
    const other = await visits.exposeGated();
    const ann = new TunnelBrowser();
    const url = await ticket(ann);
    const otherHostUrl = new URL(url);
    otherHostUrl.host = new URL(other.url).host;
    const nonce = ann.cookie(url.hostname, "underpass-sign-in")!;
    ann.setCookie(otherHostUrl.hostname, "underpass-sign-in", nonce);
    expect(readPageStatusAndCode(await ann.open(otherHostUrl))).toEqual([400, "invalid_token"]);
    expect(setsPass(await ann.open(url))).toBe(true);
  });

  test.each(["no nonce", "another nonce", "two nonces"])(
    "only in the browser that began: one with %s is refused, and uses it up",
    async (presented) => {
      const starter = new TunnelBrowser();
      const url = await ticket(starter);
      const nonce = starter.cookie(url.hostname, "underpass-sign-in")!;
      const other = new TunnelBrowser();
      if (presented === "another nonce") await other.open(tunnel.url);
      if (presented === "two nonces") {
        const both = `${nonce}; underpass-sign-in=${"x".repeat(43)}`;
        other.setCookie(url.hostname, "underpass-sign-in", both);
      }
      const refused = await other.open(url);
      expect([...readPageStatusAndCode(refused), setsPass(refused)]).toEqual([
        400,
        "invalid_token",
        false,
      ]);
      expect(setsPass(await starter.open(url))).toBe(false);
    },
  );

  test("for GET requests, and not used by HEAD requests of link previews", async () => {
    const ann = new TunnelBrowser();
    const url = await ticket(ann);
    const nonce = ann.cookie(url.hostname, "underpass-sign-in")!;
    for (const method of ["HEAD", "POST", "OPTIONS"]) {
      const answer = await visits.request(
        tunnel,
        `Content-Length: 0\r\nCookie: underpass-sign-in=${nonce}\r\n`,
        url.pathname + url.search,
        method,
      );
      expect([method, answer.status]).toEqual([method, 400]);
    }
    expect(setsPass(await ann.open(url))).toBe(true);
  });

  test("only if this service issued it: others get an error page without their markup", async () => {
    for (const forged of ["", "x", "v1.a.b.c", "<script>", `v1.${"A".repeat(9_000)}`]) {
      const url = `${tunnel.url}${TICKET_PATH}?ticket=${encodeURIComponent(forged)}`;
      const refused = await new TunnelBrowser().open(url);
      expect([forged, ...readPageStatusAndCode(refused)]).toEqual([forged, 400, "invalid_token"]);
      expect([setsPass(refused), refused.body.includes("<script")]).toEqual([false, false]);
    }
  });
});

describe("a pass", () => {
  /** Signed with the service's own key, which no attacker has. */
  async function signed(claims: object, header: object = {}): Promise<string> {
    const file = await readFile(join(visits.api.server.dataDir, "secrets.json"), "utf8");
    const { JWT_PRIVATE_KEY } = JSON.parse(file) as { JWT_PRIVATE_KEY: string };
    const jwk = JSON.parse(JWT_PRIVATE_KEY) as JWK;
    const [kid] = (
      await visits.api.anonymous.get<{ keys: JWK[] }>("/.well-known/jwks.json")
    ).body.keys.map((key) => key.kid!);
    const exp = Math.floor(Date.now() / 1000) + 60;
    const aud = new URL(tunnel.url).hostname;
    return new SignJWT({ email: "ann@example.com", tunnel: tunnel.tunnelId, aud, exp, ...claims })
      .setProtectedHeader({ alg: "ES256", typ: "underpass-visitor+jwt", kid: kid!, ...header })
      .sign(await importJWK(jwk, "ES256"));
  }

  test("made by these tests is valid", async () => {
    expect(readStatusAndCode(await visits.request(tunnel, showing(await signed({}))))).toEqual(
      PASSED,
    );
  });

  test.each<[string, object, object]>([
    ["has ended", { exp: Math.floor(Date.now() / 1000) - 1 }, {}],
    ["is of another tunnel", { tunnel: crypto.randomUUID() }, {}],
    ["is of another host", { aud: "other.localhost" }, {}],
    ["is an access token", {}, { typ: "at+jwt" }],
    ["is of no type", {}, { typ: undefined }],
  ])("that %s is refused", async (_, claims, header) => {
    const pass = await signed(claims, header);
    expect(readStatusAndCode(await visits.request(tunnel, showing(pass)))).toEqual(REFUSED);
    expect(visits.origin.requests).toEqual([]);
  });

  test("of one tunnel is not valid for another, of the same organization or not", async () => {
    const pass = await visits.getPass("ann@example.com", tunnel);
    expect(readStatusAndCode(await visits.request(tunnel, showing(pass)))).toEqual(PASSED);
    const others = [
      await visits.exposeGated(),
      await visits.exposeGated({}, await visits.api.owner()),
    ];
    for (const other of others) {
      expect(readStatusAndCode(await visits.request(other, showing(pass)))).toEqual(REFUSED);
    }
  });

  test("is not accepted as an access token, nor an access token as a pass", async () => {
    const pass = await visits.getPass("ann@example.com", tunnel);
    const bearer = createCaller(visits.api.server, { authorization: `Bearer ${pass}` });
    expect((await bearer.get("/auth/me")).status).toBe(401);
    expect(
      readStatusAndCode(await visits.request(tunnel, showing(visits.owner.accessToken))),
    ).toEqual(REFUSED);
    const asBearer = `Authorization: Bearer ${pass}\r\n`;
    expect(readStatusAndCode(await visits.request(tunnel, asBearer))).toEqual(REFUSED);
  });

  test("is found among other cookies, in one header or two, up to a bound", async () => {
    const pass = `${COOKIE}=${await visits.getPass("ann@example.com", tunnel)}`;
    const junk = `${COOKIE}=junk`;
    expect(readStatusAndCode(await visits.request(tunnel, `Cookie: ${junk}; ${pass}\r\n`))).toEqual(
      PASSED,
    );
    const lines = `Cookie: ${junk}\r\nCookie: ${pass}\r\n`;
    expect(readStatusAndCode(await visits.request(tunnel, lines))).toEqual(PASSED);
    const flood = Array(1_000).fill(junk).join("; ");
    expect(
      readStatusAndCode(await visits.request(tunnel, `Cookie: ${flood}; ${pass}\r\n`)),
    ).toEqual(REFUSED);
    const upper = pass.replace(COOKIE, COOKIE.toUpperCase());
    expect(readStatusAndCode(await visits.request(tunnel, `Cookie: ${upper}\r\n`))).toEqual(
      REFUSED,
    );
    const host = pass.replace(COOKIE, `__Host-${COOKIE}`);
    expect(readStatusAndCode(await visits.request(tunnel, `Cookie: ${host}\r\n`))).toEqual(REFUSED);
  });

  test("is not replaced by a forged verdict of the edge", async () => {
    for (const line of [
      "underpass-judged: x",
      "underpass-sign-in: start",
      "underpass-gates: null",
    ]) {
      expect([line, ...readStatusAndCode(await visits.request(tunnel, `${line}\r\n`))]).toEqual([
        line,
        ...REFUSED,
      ]);
    }
  });
});

describe("the address after a sign-in", () => {
  test.each([
    ["//evil.test", "//evil.test"],
    ["/\\evil.test", "/\\evil.test"],
    ["http://evil.test/", "/"],
    ["https:evil.test", "/"],
    ["javascript:alert(1)", "/"],
    ["@evil.test", "/"],
    [".evil.test", "/"],
    [":1@evil.test/", "/"],
    ["/a\r\nset-cookie: x=1", "/"],
    ["/a\tb", "/"],
    ["/é", "/"],
    [`/${"a".repeat(3_000)}`, "/"],
    ["", "/"],
  ])("is on the tunnel's own host if %j was requested", async (requestedPath, target) => {
    const ann = new TunnelBrowser();
    const nonce = "n".repeat(43);
    ann.setCookie(new URL(tunnel.url).hostname, "underpass-sign-in", nonce);
    const start = new URL(`http://localhost:${visits.api.server.port}/edge-auth/start`);
    start.search = new URLSearchParams({
      tunnel_id: tunnel.tunnelId,
      return_to: requestedPath,
      browser: createHash("sha256").update(nonce).digest("base64url"),
    }).toString();
    const last = await visits.followUntil(ann, start, TICKET_PATH);
    expect(last.host).toBe(new URL(tunnel.url).host);
    const { headers } = await ann.open(last);
    expect(headers.get("location")).toBe(`${tunnel.url}${target}`);
    expect(new URL(headers.get("location")!).host).toBe(new URL(tunnel.url).host);
    expect(headers.getSetCookie()).toHaveLength(1);
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test("is the tunnel's configured address, whatever the Host header says", async () => {
    const headers = { "x-forwarded-host": "evil.test", forwarded: "host=evil.test" };
    const start = `http://127.0.0.1:${visits.api.server.port}/edge-auth/start?tunnel_id=${tunnel.tunnelId}`;
    const ann = new TunnelBrowser();
    const moved = await ann.open(start, headers);
    expect(moved.location?.host).toBe(`localhost:${visits.api.server.port}`);
    const atTunnel = await ann.open(moved.location!, headers);
    expect(atTunnel.location?.href).toBe(`${tunnel.url}/`);
    const begun = await ann.open(atTunnel.location!, headers);
    const { location } = await ann.open(begun.location!, headers);
    expect(location?.searchParams.get("redirect_uri")).toBe(
      `http://localhost:${visits.api.server.port}/edge-auth/callback`,
    );
    expect(location?.searchParams.get("code_challenge_method")).toBe("S256");
    expect(location?.searchParams.get("nonce")).toMatch(/^[\w-]{43}$/);
  });
});

test("no sign-in starts for a tunnel without a gate, or for a deleted one", async () => {
  const ungated = await visits.exposeGated();
  await visits.remove(ungated.tunnelId);
  const deleted = await visits.exposeGated();
  await visits.owner.delete(`/tunnels/${deleted.tunnelId}`);
  const start = async (id: string) => {
    const { headers } = await visits.api.anonymous.get(`/edge-auth/start?moved=1&tunnel_id=${id}`);
    return headers.get("underpass-error");
  };
  for (const id of [ungated.tunnelId, deleted.tunnelId, crypto.randomUUID()]) {
    expect(await start(id)).toBe("not_found");
  }
  expect(await start("x")).toBe("invalid_request");
});
