import { describe, expect, test } from "vitest";
import {
  readAccessRequest,
  type Authenticators,
  type PasswordVerdict,
  type TokenVerdict,
} from "../../../access/access-request.ts";
import { authorize } from "../../../access/authorize.ts";
import {
  EDGE_VERDICT_HEADER,
  formatEdgeVerdict,
  hasGatesTag,
  parseEdgeVerdict,
} from "../../../access/edge-verdict.ts";
import {
  buildGates,
  createGatesTag,
  formatGates,
  hasSlowGate,
  parseGates,
} from "../../../access/gates.ts";
import { isFromForeignPage, type IdentityVerdict } from "../../../access/identity.ts";
import { ADDRESS_REFUSED_MESSAGE } from "../../../access/ip-allowlist.ts";
import { fillAddedFields, type AccessSettings } from "../../../access/settings.ts";
import { isForwarded } from "../../../protocol/header-names.ts";
import type { PolicyAction } from "../../../protocol/schemas/access/policies.ts";

const AUTH = { username: "ann", passwordHash: "$argon2id$…" };
const ALL: PolicyAction[] = [
  { kind: "header_set", name: "X-Team", value: "blue" },
  { kind: "rate_limit", requests_per_minute: 5, per_client_ip: false },
  { kind: "jwt_validation" },
  { kind: "deny", path_prefix: "/admin" },
];

const settings = (actions: PolicyAction[], basicAuth: AccessSettings["basicAuth"] = null) =>
  fillAddedFields({ version: 1, realm: "shop", basicAuth, policy: { actions } });
const LISTS = { tunnelId: crypto.randomUUID(), domains: [], emails: ["ann@example.com"] };
const request = (path = "/") => ({
  tunnelId: crypto.randomUUID(),
  path,
  authorization: "x",
  address: "192.0.2.1",
  authority: "shop.localhost",
  cookie: null,
  method: "GET",
  origin: null,
  isWebSocket: false,
  getHeaderPaths: () => [],
});

/** Authenticators with fixed verdicts, and the order in which they were called. */
function fixedAuthenticators(
  password: PasswordVerdict = "correct",
  token: TokenVerdict = "valid",
  identity: IdentityVerdict = "allowed",
) {
  const called: string[] = [];
  const authenticators: Authenticators = {
    password: () => (called.push("password"), Promise.resolve(password)),
    identity: () => (called.push("identity"), Promise.resolve(identity)),
    token: () => (called.push("token"), Promise.resolve(token)),
  };
  return { called, authenticators };
}

describe("gates run in a fixed order, whatever the order of the policy's actions", () => {
  const gates = buildGates({ ...settings(ALL, AUTH), identityGate: LISTS }, createGatesTag())!;
  const down = { keysDownForMs: 1 };
  const [PASSWORD, IDENTITY] = [["password"], ["password", "identity"]];

  test.each<[string, string, PasswordVerdict, IdentityVerdict, TokenVerdict, unknown, string[]]>([
    ["a wrong password", "/admin", "wrong", "signed_out", "invalid", "unauthorized", PASSWORD],
    ["no pass", "/admin", "correct", "signed_out", "invalid", "unauthorized", IDENTITY],
    [
      "a pass of another account",
      "/",
      "correct",
      { denied: "eve" },
      "invalid",
      "forbidden",
      IDENTITY,
    ],
    ["a pass that cannot be verified", "/", "correct", down, "invalid", "unavailable", IDENTITY],
    ["a denied path", "/admin", "correct", "allowed", "invalid", "forbidden", IDENTITY],
    ["a bad token", "/", "correct", "allowed", "invalid", "unauthorized", [...IDENTITY, "token"]],
    ["valid credentials", "/", "correct", "allowed", "valid", undefined, [...IDENTITY, "token"]],
  ])("%s decides the request", async (_, path, password, identity, token, code, order) => {
    const { called, authenticators } = fixedAuthenticators(password, token, identity);
    expect((await authorize(gates, request(path), authenticators))?.code).toBe(code);
    expect(called).toEqual(order);
  });
});

describe("an IP allowlist", () => {
  const withList = { ...settings([], AUTH), allowedCidrs: ["192.0.2.0/24", "2001:db8::/32"] };

  test("alone is a gate, with no slow part", () => {
    const gates = buildGates({ ...withList, basicAuth: null }, createGatesTag())!;
    expect(gates.allowedCidrs).toEqual(withList.allowedCidrs);
    expect(hasSlowGate(gates)).toBe(false);
  });

  test.each([
    ["192.0.2.1", undefined],
    ["2001:db8::1", undefined],
    ["192.0.3.1", "forbidden"],
    ["2001:db9::1", "forbidden"],
  ])("decides about %s before any credentials are read: %s", async (address, code) => {
    const gates = buildGates(withList, createGatesTag())!;
    const { called, authenticators } = fixedAuthenticators();
    const refusal = await authorize(gates, { ...request(), address }, authenticators);
    expect(refusal?.code).toBe(code);
    expect(refusal?.message).toBe(code && ADDRESS_REFUSED_MESSAGE);
    expect(called).toEqual(code === undefined ? ["password"] : []);
  });
});

describe("a page of another host", () => {
  const visit = { method: "POST", authority: "shop.localhost:8787", isWebSocket: false };

  test.each([
    ["POST", "http://blog.localhost:8787"],
    ["DELETE", "https://shop.localhost.evil.test"],
    ["POST", "null"],
    ["POST", "https://a b"],
  ])("made a request with %s and the origin %s", (method, origin) => {
    expect(isFromForeignPage({ ...visit, method, origin })).toBe(true);
  });

  test.each([
    ["POST", "https://SHOP.localhost"],
    ["POST", null],
    ["GET", "http://blog.localhost:8787"],
    ["HEAD", "http://blog.localhost:8787"],
    ["OPTIONS", "http://blog.localhost:8787"],
  ])("did not make one that changes something with %s and the origin %s", (method, origin) => {
    expect(isFromForeignPage({ ...visit, method, origin })).toBe(false);
  });

  test("opened a WebSocket, although its method is GET", () => {
    const socket = { ...visit, method: "GET", isWebSocket: true };
    expect(isFromForeignPage({ ...socket, origin: "https://blog.localhost" })).toBe(true);
    expect(isFromForeignPage({ ...socket, origin: "https://shop.localhost" })).toBe(false);
    expect(isFromForeignPage({ ...socket, origin: null })).toBe(false);
  });

  test("is assumed when neither its host nor that of the request can be read", () => {
    const unreadable = { ...visit, authority: "a b", origin: "https://a b" };
    expect(isFromForeignPage(unreadable)).toBe(true);
  });
});

describe("a refusal has the headers that tell a client how to proceed", () => {
  const withPassword = buildGates(settings([], AUTH), createGatesTag())!;
  const withToken = buildGates(settings([{ kind: "jwt_validation" }]), createGatesTag())!;
  const refusal = (password: PasswordVerdict, token: TokenVerdict) => {
    const gates = password === "correct" ? withToken : withPassword;
    return authorize(gates, request(), fixedAuthenticators(password, token).authenticators);
  };

  test.each([
    ["wrong", "valid", /username and a password/],
    ["correct", "missing", /requires a JWT.*`Authorization: Bearer <JWT>`/],
    ["correct", "invalid", /does not accept the JWT/],
  ] as const)("%s, %s: and a message that says what is missing", async (password, token, text) => {
    expect((await refusal(password, token))?.message).toMatch(text);
  });

  test.each([
    ["wrong", "valid", "unauthorized", { "www-authenticate": 'Basic realm="shop"' }],
    [{ tooManyWrongForMs: 11_001 }, "valid", "rate_limited", { "retry-after": "12" }],
    [{ busyForMs: 1 }, "valid", "unavailable", { "retry-after": "1" }],
    ["correct", "missing", "unauthorized", { "www-authenticate": "Bearer" }],
    ["correct", "invalid", "unauthorized", { "www-authenticate": 'Bearer error="invalid_token"' }],
    ["correct", { issuerDownForMs: 5_000 }, "unavailable", { "retry-after": "5" }],
  ] as const)("%j, %j: %s", async (password, token, code, headers) => {
    const by = password === "correct" ? "jwt_validation" : "password";
    expect(await refusal(password, token)).toMatchObject({ code, by, headers });
  });
});

describe("settings", () => {
  test("without a gate build no gates", () => {
    expect(buildGates({ ...settings([]), policy: null }, createGatesTag())).toBeNull();
    expect(buildGates(settings(ALL.slice(0, 2)), createGatesTag())).toBeNull();
    expect(buildGates(settings(ALL), createGatesTag())).toMatchObject({
      deny: ["/admin"],
      basicAuth: null,
    });
  });

  test("fit into a header, whatever characters they contain", () => {
    const actions: PolicyAction[] = [{ kind: "deny", path_prefix: '/caf\u00e9 "\\ \u{1f600}' }];
    const gates = buildGates(settings(actions, AUTH), createGatesTag());
    const header = formatGates(gates);
    expect(header).toMatch(/^[ -~]+$/);
    expect(parseGates(header)).toEqual(gates);
    expect(parseGates(formatGates(null))).toBeNull();
  });

  test("that are too long for a header are sent as none, and only the object authorizes", () => {
    const build = (length: number) => {
      const allowedCidrs = Array.from({ length }, () => "192.0.2.0/24");
      return formatGates(buildGates({ ...settings([], AUTH), allowedCidrs }, createGatesTag()));
    };
    expect(build(6_000).length).toBeGreaterThan(64 * 1024);
    expect(build(7_000)).toBe("null");
  });
});

describe("a verdict of the edge", () => {
  const gates = buildGates(settings(ALL), createGatesTag())!;
  const newer = buildGates(settings(ALL), createGatesTag())!;
  const refusal = { code: "forbidden" as const };

  test("is accepted only for the gates that the edge authorized by", () => {
    expect(parseEdgeVerdict(formatEdgeVerdict(gates, null), gates)).toBeNull();
    expect(parseEdgeVerdict(formatEdgeVerdict(gates, refusal), gates)).toEqual(refusal);
    expect(parseEdgeVerdict(formatEdgeVerdict(gates, null), newer)).toBeUndefined();
    expect(parseEdgeVerdict(formatEdgeVerdict(gates, refusal), newer)).toBeUndefined();
    expect(hasGatesTag(formatEdgeVerdict(gates, refusal), gates)).toBe(true);
    expect(hasGatesTag(formatEdgeVerdict(gates, refusal), newer)).toBe(false);
  });

  test.each([
    null,
    "",
    "1",
    "pass",
    "null",
    "{}",
    "00000000-0000-4000-8000-000000000000",
    gates.gatesTag.slice(0, -1),
    ` ${gates.gatesTag}`,
    gates.gatesTag.toUpperCase().replace(/\d/g, "0"),
  ])("is not accepted from the header %j", (header) => {
    expect(parseEdgeVerdict(header, gates)).toBeUndefined();
  });

  test("is not forwarded to the local server, which could learn the gates tag", () => {
    expect(isForwarded(EDGE_VERDICT_HEADER)).toBe(false);
    expect(isForwarded(EDGE_VERDICT_HEADER.replace("-", "_"))).toBe(false);
  });
});

test("the path that gates read is the request target up to its query, unchanged", () => {
  const readPath = (url: string) =>
    readAccessRequest({ url, headers: new Headers() } as unknown as Request, "id", "192.0.2.1")
      .path;
  expect(readPath("http://h/a%2e%2e//b?c=/../d")).toBe("/a%2e%2e//b");
  expect(readPath("http://h?c")).toBe("/");
  expect(readPath("http://h//evil.test/x")).toBe("//evil.test/x");
});

describe("a deny rule also applies to the path in a header that frameworks read instead", () => {
  const gates = buildGates(settings([{ kind: "deny", path_prefix: "/admin" }]), createGatesTag())!;
  const findCode = async (name: string, value: string) => {
    const visit = new Request("http://shop.localhost/", { headers: { [name]: value } });
    const read = readAccessRequest(visit, "id", "192.0.2.1");
    return (await authorize(gates, read, fixedAuthenticators().authenticators))?.code;
  };

  test.each([
    ["x-original-url", "/admin"],
    ["x-original-url", "/x/..;/%61dmin?a"],
    ["X-Rewrite-URL", "admin/users"],
    ["x_rewrite_url", "https://shop.localhost/admin"],
    ["x-rewrite-url", "/public, /admin"],
  ])("%s: %s", async (name, value) => {
    expect(await findCode(name, value)).toBe("forbidden");
  });

  test.each([
    ["x-original-url", "/public"],
    ["x-rewrite-url", "/?next=/admin"],
    ["x-forwarded-prefix", "/admin"],
  ])("but not %s: %s", async (name, value) => {
    expect(await findCode(name, value)).toBeUndefined();
  });
});
