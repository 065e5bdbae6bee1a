/** The identity gate for browsers and programs, with a real provider and a real agent. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ExposedTunnel } from "../../../agent/expose.ts";
import { openBrowser, openPage } from "../../harness/browser/browser.ts";
import {
  COOKIE,
  startGatedVisits,
  TICKET_PATH,
  TunnelBrowser,
  type GatedVisits,
} from "../../harness/tunnel/gated-visits.ts";
import { OK } from "../../harness/tunnel/origin.ts";
import { findHeader, type Answer } from "../../harness/tunnel/raw-http.ts";

let visits: GatedVisits;
let browser: Browser;
beforeAll(async () => {
  [visits, browser] = await Promise.all([startGatedVisits(), openBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await visits?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  visits.origin.requests.length = 0;
  visits.origin.respond = () => OK;
});

const readStatusAndCode = ({ status, headers }: Answer) => [
  status,
  findHeader(headers, "underpass-error"),
];
function findSignInLink({ body, url }: { body: string; url: string }): URL {
  const [, href = ""] =
    /<a href="([^"]+)">Sign in (?:again|with another account)</.exec(body) ?? [];
  expect(href, body).not.toBe("");
  return new URL(href.replaceAll("&amp;", "&"), url);
}
const PASSED = [200, undefined];
const REFUSED = [401, "unauthorized"];
const showing = (pass: string) => `Cookie: ${COOKIE}=${pass}\r\n`;
const HTML = "Accept: text/html\r\n";
const cookiesSeen = () =>
  visits.origin.requests.map(({ headers }) => findHeader(headers, "cookie") ?? null);

describe("a visitor who signs in", () => {
  test("returns to the requested page, on the tunnel's own host, and stays signed in", async () => {
    const tunnel = await visits.exposeGated();
    visits.signInAs("ann@example.com");
    const ann = new TunnelBrowser();
    const there = await ann.followRedirects(`${tunnel.url}/a//b?next=https://x.test/%20`);
    expect([there.status, there.body]).toEqual([200, "ok"]);
    expect(there.url).toBe(`${tunnel.url}/a//b?next=https://x.test/%20`);
    visits.provider.user = null;
    expect((await ann.open(tunnel.url)).status).toBe(200);
    expect(visits.origin.requests.map(({ target }) => target)).toEqual([
      "/a//b?next=https://x.test/%20",
      "/",
    ]);
  });

  test("in a real browser, has a pass for that host only, which scripts cannot read", async () => {
    const tunnel = await visits.exposeGated();
    visits.signInAs("ann@example.com");
    const page = "<!doctype html><html lang=en><title>Shop</title><link rel=icon href=data:,>";
    visits.origin.respond = () =>
      `HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: ${page.length}\r\n\r\n${page}`;
    const watched = await openPage(browser);
    await watched.page.goto(`${tunnel.url}/shop`);
    expect(watched.page.url()).toBe(`${tunnel.url}/shop`);
    expect(await watched.page.title()).toBe("Shop");
    expect(await watched.page.evaluate("document.cookie")).toBe("");
    const fetched = "fetch('/x').then(async (a) => [a.status, a.redirected])";
    expect(await watched.page.evaluate(fetched)).toEqual([200, false]);
    const cookies = await watched.page.context().cookies();
    const passes = cookies.filter(({ name }) => name === COOKIE);
    expect(passes).toMatchObject([
      { domain: new URL(tunnel.url).hostname, path: "/", httpOnly: true, sameSite: "Lax" },
    ]);
    expect(cookies.filter(({ name }) => name.startsWith("underpass-visit-"))).toEqual([]);
    expect(watched.problems).toEqual([]);
    await watched.page.close();
  });

  test("in several tabs at once is signed in to each", async () => {
    const tunnel = await visits.exposeGated();
    visits.signInAs("ann@example.com");
    const ann = new TunnelBrowser();
    const one = await visits.followUntil(ann, `${tunnel.url}/one`, "/edge-auth/callback");
    const two = await visits.followUntil(ann, `${tunnel.url}/two`, "/edge-auth/callback");
    expect((await ann.followRedirects(one)).url).toBe(`${tunnel.url}/one`);
    expect((await ann.followRedirects(two)).url).toBe(`${tunnel.url}/two`);
  });
});

describe("a request that is not a navigation is refused without a redirect", () => {
  let tunnel: ExposedTunnel;
  beforeAll(async () => {
    tunnel = await visits.exposeGated();
  });

  test.each([
    ["a program", "GET", ""],
    ["a program that takes JSON", "GET", "Accept: application/json\r\n"],
    ["a program that prefers JSON", "GET", "Accept: application/json, text/html;q=0.1\r\n"],
    ["a script's fetch", "GET", `${HTML}Sec-Fetch-Mode: cors\r\n`],
    ["a script's fetch of its own host", "GET", `${HTML}Sec-Fetch-Mode: same-origin\r\n`],
    ["an image", "GET", `${HTML}Sec-Fetch-Mode: no-cors\r\n`],
    ["a form", "POST", `${HTML}Sec-Fetch-Mode: navigate\r\nContent-Length: 0\r\n`],
    ["a preflight", "OPTIONS", HTML],
    [
      "a WebSocket",
      "GET",
      `${HTML}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n`,
    ],
  ])("%s", async (_, method, headers) => {
    const answer = await visits.request(tunnel, headers, "/", method);
    expect(readStatusAndCode(answer)).toEqual(REFUSED);
    expect(findHeader(answer.headers, "location")).toBeUndefined();
    expect(findHeader(answer.headers, "underpass-sign-in")).toBeUndefined();
    expect(JSON.parse(answer.body.toString())).toMatchObject({ error: "unauthorized" });
    expect(visits.origin.requests).toEqual([]);
  });

  test("but a HEAD request for a page is redirected", async () => {
    const answer = await visits.request(tunnel, HTML, "/a?b", "HEAD");
    const location = new URL(findHeader(answer.headers, "location")!);
    expect([answer.status, location.pathname]).toEqual([302, "/edge-auth/start"]);
    expect(Object.fromEntries(location.searchParams)).toEqual({
      tunnel_id: tunnel.tunnelId,
      return_to: "/a?b",
      browser: expect.stringMatching(/^[\w-]{43}$/) as string,
    });
  });
});

describe("the allow lists", () => {
  test("apply on each request: an account that is removed is refused from the next one on", async () => {
    const tunnel = await visits.exposeGated({ allowed_emails: ["Ann@Example.com"] });
    const pass = await visits.getPass("ann@example.com", tunnel);
    const asks = async () => readStatusAndCode(await visits.request(tunnel, showing(pass)));
    expect(await asks()).toEqual(PASSED);
    for (const [lists, outcome] of [
      [{ allowed_emails: ["bob@example.com"] }, [403, "forbidden"]],
      [{ allowed_domains: ["EXAMPLE.com"] }, PASSED],
      [{ allowed_domains: ["sub.example.com"] }, [403, "forbidden"]],
      [{}, PASSED],
    ] as const) {
      expect((await visits.put(tunnel.tunnelId, lists)).status).toBe(200);
      expect([lists, await asks()]).toEqual([lists, outcome]);
    }
    await visits.remove(tunnel.tunnelId);
    expect(readStatusAndCode(await visits.request(tunnel))).toEqual(PASSED);
    await visits.put(tunnel.tunnelId, {});
    expect(readStatusAndCode(await visits.request(tunnel))).toEqual(REFUSED);
  });

  test("name the refused account, and offer to sign in with another one", async () => {
    const tunnel = await visits.exposeGated({ allowed_emails: ["ann@example.com"] });
    visits.signInAs("o'eve+x@example.com");
    const eve = new TunnelBrowser();
    const denied = await eve.followRedirects(`${tunnel.url}/a?b"<i>`);
    expect([denied.status, denied.headers.get("underpass-error")]).toEqual([403, "forbidden"]);
    expect(denied.body).toContain("o&#39;eve+x@example.com");
    expect(denied.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(eve.cookie(new URL(tunnel.url).hostname, COOKIE)).toBeUndefined();
    visits.signInAs("ann@example.com");
    const atProvider = await eve.open(findSignInLink(denied));
    expect(atProvider.location?.searchParams.get("prompt")).toBe("select_account");

    await visits.put(tunnel.tunnelId, {});
    const pass = await visits.getPass("eve@example.com", tunnel);
    await visits.put(tunnel.tunnelId, { allowed_emails: ["ann@example.com"] });
    const page = await visits.request(tunnel, showing(pass) + HTML, '/"><script>alert(1)</script>');
    const text = page.body.toString();
    expect(readStatusAndCode(page)).toEqual([403, "forbidden"]);
    expect(text).toContain("eve@example.com");
    expect(text).not.toContain("<script");
    expect(text).toMatch(/href="http:[^"]+as_another=1"/);
    const json = await visits.request(tunnel, showing(pass));
    expect(JSON.parse(json.body.toString())).toMatchObject({ error: "forbidden" });
    expect(json.body.toString()).toContain("eve@example.com");
  });

  test("ignore an address that the provider has not verified, and offer to sign in again", async () => {
    const tunnel = await visits.exposeGated();
    visits.signInAs("ann@example.com", false);
    const denied = await new TunnelBrowser().followRedirects(tunnel.url);
    expect([denied.status, denied.body.includes("email_not_verified")]).toEqual([403, true]);
    visits.provider.user = null;
    const ann = new TunnelBrowser();
    const refused = await ann.followRedirects(`${tunnel.url}/wanted`);
    expect([refused.status, refused.body.includes("access_denied")]).toEqual([403, true]);
    expect(refused.body).not.toContain("<b>no</b>");
    visits.signInAs("ann@example.com");
    expect(findSignInLink(denied).searchParams.get("as_another")).toBe("1");
    const admitted = await ann.followRedirects(findSignInLink(refused).href);
    expect([admitted.status, admitted.url]).toEqual([200, `${tunnel.url}/wanted`]);
  });
});

describe("a page of another host", () => {
  const FORBIDDEN = [403, "forbidden"];
  const UPGRADE =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

  test("can't use the pass of a visitor for requests that may change something, nor for WebSockets", async () => {
    const tunnel = await visits.exposeGated();
    const pass = showing(await visits.getPass("ann@example.com", tunnel));
    const { host, port } = new URL(tunnel.url);
    const ask = async (method: string, origin: string, headers = "") => {
      const line = origin === "" ? "" : `Origin: ${origin}\r\n`;
      const lines = `${pass}${line}${headers}Content-Length: 0\r\n`;
      return readStatusAndCode(await visits.request(tunnel, lines, "/", method));
    };
    visits.origin.requests.length = 0;
    for (const origin of [`http://sibling.localhost:${port}`, "https://other.example", "null"]) {
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "REPORT"])
        expect([origin, method, await ask(method, origin)]).toEqual([origin, method, FORBIDDEN]);
      expect(await ask("GET", origin, UPGRADE)).toEqual(FORBIDDEN);
    }
    expect(visits.origin.requests).toEqual([]);
    expect(await ask("POST", `http://${host}`)).toEqual(PASSED);
    expect(await ask("POST", "")).toEqual(PASSED);
    expect(await ask("GET", "https://other.example")).toEqual(PASSED);
  });
});

describe("not forwarded to the local server", () => {
  test("is the pass: other cookies are, byte for byte", async () => {
    const tunnel = await visits.exposeGated();
    const pass = `${COOKIE}=${await visits.getPass("ann@example.com", tunnel)}`;
    visits.origin.requests.length = 0;
    for (const line of [
      `Cookie: ${pass}\r\n`,
      `Cookie: a="1, 2";b==%3B; ${pass};  c=3\r\n`,
      `Cookie: a=1\r\nCookie: ${pass}\r\n`,
      `Cookie: ${pass}\r\nCookie: a=1\r\n`,
      `Cookie: ${COOKIE}=stale; ${pass}; a=1\r\n`,
    ]) {
      expect([line, readStatusAndCode(await visits.request(tunnel, line))]).toEqual([line, PASSED]);
    }
    expect(cookiesSeen()).toEqual([null, 'a="1, 2";b==%3B;  c=3', "a=1", "a=1", "a=1"]);
    await visits.remove(tunnel.tunnelId);
    await visits.request(tunnel, `Cookie: ${pass}; a=1\r\n`);
    expect(cookiesSeen().at(-1)).toBe("a=1");
  });

  test("is the cookie's name: a local server cannot set that cookie", async () => {
    const tunnel = await visits.exposeGated();
    const pass = await visits.getPass("ann@example.com", tunnel);
    const lines = ["a=1", `${COOKIE}=x; Path=/`, `=${COOKIE}=y`, `__Host-${COOKIE}=z`, "b=2"]
      .map((line) => `set-cookie: ${line}\r\n`)
      .join("");
    visits.origin.respond = () => `HTTP/1.1 200 OK\r\n${lines}content-length: 0\r\n\r\n`;
    const { headers } = await visits.request(tunnel, showing(pass));
    const set = headers.filter(([name]) => name.toLowerCase() === "set-cookie");
    expect(set.map(([, value]) => value)).toEqual(["a=1", "b=2"]);
  });

  test("is the path of tickets, while the tunnel has the gate", async () => {
    const tunnel = await visits.exposeGated();
    const pass = await visits.getPass("ann@example.com", tunnel);
    visits.origin.requests.length = 0;
    const answer = await visits.request(tunnel, showing(pass), TICKET_PATH);
    expect(readStatusAndCode(answer)).toEqual([400, "invalid_token"]);
    await visits.remove(tunnel.tunnelId);
    expect(readStatusAndCode(await visits.request(tunnel, "", TICKET_PATH))).toEqual(PASSED);
    expect(visits.origin.requests.map(({ target }) => target)).toEqual([TICKET_PATH]);
  });
});

describe("the position of the gate", () => {
  test("is after maintenance and the password, and before the policy", async () => {
    const tunnel = await visits.exposeGated({ allowed_emails: ["ann@example.com"] });
    const pass = await visits.getPass("ann@example.com", tunnel);
    const put = (setting: string, body: object) =>
      visits.owner.send("PUT", `/tunnels/${tunnel.tunnelId}/${setting}`, {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const basic = `Authorization: Basic ${btoa("ann:open sesame")}\r\n`;
    const ask = async (headers: string) =>
      readStatusAndCode(await visits.request(tunnel, headers, "/admin"));
    await put("policy", { actions: [{ kind: "deny", path_prefix: "/admin" }] });
    expect(await ask("")).toEqual(REFUSED);
    expect(await ask(showing(pass))).toEqual([403, "forbidden"]);
    await put("auth", { username: "ann", password: "open sesame" });
    const answer = await visits.request(tunnel, showing(pass) + HTML, "/admin");
    expect(findHeader(answer.headers, "www-authenticate")).toMatch(/^Basic/);
    expect((await visits.request(tunnel, basic + HTML, "/admin")).status).toBe(302);
    expect(await ask(basic + showing(pass))).toEqual([403, "forbidden"]);
    await put("maintenance", {});
    expect(await ask(basic + showing(pass))).toEqual([503, "maintenance"]);
  });

  test("is on the service's own domain: custom domains are exempt", async () => {
    const tunnel = await visits.exposeGated();
    const host = "shop.example.test";
    await visits.api.sql("insert into hostnames (host, tunnel_id) values ($1, $2)", [
      host,
      tunnel.tunnelId,
    ]);
    expect(readStatusAndCode(await visits.request(host))).toEqual(PASSED);
    const own = new URL(tunnel.url).hostname;
    for (const spelling of [own, own.toUpperCase(), `${own}.`, `${own}:1`, `${own}.:80`]) {
      const answer = await visits.request(spelling);
      expect([spelling, answer.status === 200, visits.origin.requests.length]).toEqual([
        spelling,
        false,
        1,
      ]);
    }
  });
});
