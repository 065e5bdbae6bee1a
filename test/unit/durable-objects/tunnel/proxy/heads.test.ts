import { getRequestTarget } from "../../../../../protocol/request-target.ts";
import { describe, expect, test } from "vitest";
import {
  parseContentLength,
  hasNoBody,
  buildRequestHead,
  buildResponseHeaders,
  countHeadBytes,
  removeFromHead,
  rewriteHead,
} from "../../../../../durable-objects/tunnel/proxy/heads.ts";
import { compilePolicy } from "../../../../../access/policy-actions.ts";
import { ERROR_HEADER, REQUEST_ID_HEADER } from "../../../../../protocol/errors.ts";
import { FLAG } from "../../../../../protocol/wire/frames.ts";

/** A request as the platform provides it: Node's own class rejects some of these. */
function request(parts: {
  method?: string;
  url?: string;
  headers?: [string, string][];
  body?: boolean;
}) {
  return {
    method: parts.method ?? "GET",
    url: parts.url ?? "http://shop.localhost/",
    headers: new Headers(parts.headers ?? [["host", "shop.localhost"]]),
    body: parts.body ? new ReadableStream() : null,
  } as unknown as Parameters<typeof buildRequestHead>[0];
}

const ADDRESS = { scheme: "https", portSuffix: ":8443", apiOrigin: "https://api.localhost:8443" };
const buildHead = (parts: Parameters<typeof request>[0], visitorAddress = "192.0.2.1") =>
  buildRequestHead(request(parts), visitorAddress, ADDRESS);

function headersSent(headers: [string, string][]): Record<string, string> {
  const { parts } = buildHead({ headers });
  const pairs = parts.slice(2);
  return Object.fromEntries(
    Array.from({ length: pairs.length / 2 }, (_, i) => [pairs[2 * i]!, pairs[2 * i + 1]!]),
  );
}

describe("a request's head", () => {
  test.each([
    ["http://h/", "/"],
    ["http://h", "/"],
    ["http://h//evil.test/abs", "//evil.test/abs"],
    ["http://h/a/../b%2e%2e/%2F//c?x=%zz", "/a/../b%2e%2e/%2F//c?x=%zz"],
    ["http://h/?", "/?"],
    ["http://h/@host:1/x", "/@host:1/x"],
    ["http://a@b:99/x?http://c/d", "/x?http://c/d"],
  ])("of %s has the target %s, byte for byte", (url, target) => {
    expect(getRequestTarget(url)).toBe(target);
  });

  test("has the forwarding headers of this service, whatever the visitor sends", () => {
    const forged: [string, string][] = [
      "forwarded",
      "x-forwarded-for",
      "X-Forwarded-Host",
      "x-forwarded-proto",
      "x-forwarded-port",
      "x-real-ip",
      "true-client-ip",
      "cf-connecting-ip",
      "x_forwarded_for",
      "X_Forwarded-Proto",
      "x_real_ip",
      "true_client_ip",
      "cf_connecting_ip",
      "X.Forwarded.For",
      "client-ip",
      "fastly-client-ip",
      "x-cluster-client-ip",
      "fly-client-ip",
      "x-azure-clientip",
      "wl_proxy_client_ip",
      "x-vercel-forwarded-for",
      "x-original-forwarded-for",
      "x-forwarded-prefix",
      "SCRIPT_NAME",
      "x-script-name",
      "path_info",
      "x-scheme",
      "x-forwarded-protocol",
      "front-end-https",
      "x-original-host",
      "underpass-request-id",
    ].map((name) => [name, "forged"]);
    expect(headersSent([["host", "shop.localhost"], ["x-mine", "kept"], ...forged])).toEqual({
      host: "shop.localhost",
      "x-mine": "kept",
      "x-forwarded-for": "192.0.2.1",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "shop.localhost",
    });
  });

  test("has no hop-by-hop headers, and none that Connection names", () => {
    const sent = headersSent([
      ["host", "shop.localhost"],
      ["connection", "Keep-Alive, X-Private"],
      ["keep-alive", "timeout=5"],
      ["te", "trailers"],
      ["transfer-encoding", "chunked"],
      ["x-private", "1"],
      ["x-public", "2"],
    ]);
    expect(Object.keys(sent).sort()).toEqual([
      "host",
      "x-forwarded-for",
      "x-forwarded-host",
      "x-forwarded-proto",
      "x-public",
    ]);
  });

  test("loses every spelling that a local server could take for a header that a policy sets or removes", () => {
    const names = ["x-auth-user", "x_auth_user", "X-Auth_User", "x.auth.user", "x_old", "x-auth"];
    const head = buildHead({ headers: names.map((name) => [name, "visitor"]) }, "");
    const { rewrite } = compilePolicy({
      actions: [{ kind: "header_set", name: "X-Auth-User", value: "trusted" }],
    });
    rewriteHead(head, { ...rewrite, remove: new Set(["x-old"]) });
    expect(head.parts.slice(2)).toEqual([
      "x-auth",
      "visitor",
      "x-forwarded-proto",
      "https",
      "x-auth-user",
      "trusted",
    ]);
  });

  test("loses any number of headers in one pass", () => {
    const names = Array.from({ length: 2_000 }, (_, i) => `x-${i}`);
    const parts = ["GET", "/", ...names.flatMap((name) => [name, "1", "x-kept", name])];
    let steps = 0;
    const counted = new Proxy(parts, {
      set(target, key, value) {
        steps += 1;
        return Reflect.set(target, key, value);
      },
    });
    const head = { ...buildHead({}), parts: counted };
    removeFromHead(head, { remove: new Set(names), set: new Map() });
    expect(parts).toEqual(["GET", "/", ...names.flatMap((name) => ["x-kept", name])]);
    expect(steps).toBeLessThanOrEqual(4 * names.length);
  });

  test("keeps the host and the forwarding headers even if Connection names them", () => {
    const sent = headersSent([
      ["host", "shop.localhost"],
      ["connection", "host, x-forwarded-for, x-forwarded-host"],
    ]);
    expect(sent).toMatchObject({
      host: "shop.localhost",
      "x-forwarded-for": "192.0.2.1",
      "x-forwarded-host": "shop.localhost",
    });
  });

  test("has no address if the address is unknown", () => {
    const { parts } = buildHead({}, "");
    expect(parts).not.toContain("x-forwarded-for");
  });

  test.each([
    ["shop.localhost", "shop.localhost"],
    ["SHOP.LocalHost.", "shop.localhost"],
    ["shop.localhost:8443", "shop.localhost:8443"],
    ["Shop.localhost.:8443", "shop.localhost:8443"],
    ["shop.localhost:443", "shop.localhost"],
    ["shop.localhost:18443", "shop.localhost"],
    ["shop.localhost:", "shop.localhost"],
    ["[::1]:8443", "[::1]:8443"],
    ["a@b", undefined],
  ])("for the host %j has the X-Forwarded-Host %j, and the visitor's Host", (host, forwarded) => {
    const sent = headersSent([["host", host]]);
    expect([sent["host"], sent["x-forwarded-host"]]).toEqual([host, forwarded]);
  });

  test("has every Authorization header but one with an access token of the API", () => {
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
    const jwt = (typ: string, iss: string, aud: unknown) =>
      `${encode({ alg: "ES256", typ })}.${encode({ iss, aud })}.c2ln`;
    const own = jwt("at+jwt", ADDRESS.apiOrigin, "underpass");
    const read = (authorization: string) => {
      const { parts, hasAccessToken } = buildHead({ headers: [["authorization", authorization]] });
      return [hasAccessToken, parts.includes(authorization)];
    };
    for (const sent of [
      ...["Bearer", "bearer", "BEARER ", "Bearer\t", "Token", "JWT"].map((it) => `${it} ${own}`),
      own,
      `Bearer "${own}"`,
      `Token token=${own}`,
      `Bearer x, Bearer ${own}`,
    ]) {
      expect([sent, ...read(sent)]).toEqual([sent, true, false]);
    }
    for (const other of [
      "Basic YTpi",
      "Bearer x",
      "Bearer ..",
      `Bearer ${jwt("JWT", ADDRESS.apiOrigin, "underpass")}`,
      `Bearer ${jwt("at+jwt", "https://other.example", "underpass")}`,
      `Bearer ${jwt("at+jwt", ADDRESS.apiOrigin, "shop.localhost")}`,
      `Bearer ${encode([])}.${encode({})}.`,
    ]) {
      expect([other, ...read(other)]).toEqual([other, false, true]);
    }
  });

  test("says whether a body follows", () => {
    expect(buildHead({}).flags).toBe(FLAG.end);
    expect(buildHead({ method: "POST", body: true }).flags).toBe(0);
    expect(buildHead({ method: "HEAD" }).isHeadMethod).toBe(true);
  });

  test("of a WebSocket is marked, and has no headers of the handshake", () => {
    const headers: [string, string][] = [
      ["upgrade", "WebSocket"],
      ["connection", "keep-alive, Upgrade"],
      ["sec-websocket-key", "a"],
      ["sec-websocket-version", "13"],
      ["sec-websocket-protocol", "chat"],
      ["content-length", "5"],
    ];
    const head = buildHead({ headers }, "");
    expect(head).toMatchObject({ isWebSocket: true, flags: FLAG.socket });
    expect(head.parts).toEqual([
      "GET",
      "/",
      "sec-websocket-protocol",
      "chat",
      "x-forwarded-proto",
      "https",
    ]);
    expect(buildHead({ method: "POST", headers }).isWebSocket).toBe(false);
  });
});

test("a request's head counts for more than its characters when its headers are tiny", () => {
  const tiny = Array.from({ length: 200 }, (_, i): [string, string] => [`x${i}`, ""]);
  expect(countHeadBytes(buildHead({ headers: tiny }))).toBeGreaterThan(200 * 512);
});

describe("a response's head", () => {
  test("keeps Set-Cookie headers separate and cannot imitate an error of this service", () => {
    const pairs = ["Set-Cookie", "a=1", ERROR_HEADER, "x", "set-cookie", "b=2"];
    expect(buildResponseHeaders(pairs, "0190")).toEqual([
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      [REQUEST_ID_HEADER, "0190"],
    ]);
  });

  test("has the request's id instead of one that the local server sends", () => {
    const pairs = ["Underpass-Request-Id", "other"];
    expect(buildResponseHeaders(pairs, "0190")).toEqual([[REQUEST_ID_HEADER, "0190"]]);
  });

  test.each([
    ["a name with a space", ["a b", "1"]],
    ["a line break in a value", ["a", "1\r\nb: 2"]],
    ["a NUL in a value", ["a", "1\0"]],
  ])("with %s is not a valid response", (_, pairs) => {
    expect(() => new Headers(buildResponseHeaders(pairs, "0190"))).toThrow(TypeError);
  });

  test.each([
    ["5", 5],
    ["0", 0],
    ["-1", null],
    ["5, 5", null],
    ["1e3", null],
    ["", null],
    ["9999999999999999", null],
  ])("with the length %j has %s bytes", (value, length) => {
    expect(parseContentLength([["content-length", value]])).toBe(length);
  });

  test("with two lengths has an unknown one", () => {
    const length: [string, string] = ["content-length", "5"];
    expect(parseContentLength([length, length])).toBeNull();
  });

  test("of 204, 205 and 304 has no body", () => {
    expect([200, 204, 205, 206, 304, 404].map(hasNoBody)).toEqual([
      false,
      true,
      true,
      false,
      true,
      false,
    ]);
  });
});
