import { describe, expect, test } from "vitest";
import type { IdentityVerdict } from "../../../access/identity.ts";
import {
  judge,
  visitorOf,
  type Checks,
  type PasswordVerdict,
  type TokenVerdict,
} from "../../../access/judge.ts";
import { isSealed, JUDGED_HEADER, readVerdict, writeVerdict } from "../../../access/refusal.ts";
import {
  gatesOf,
  headersOf,
  newSeal,
  rateLimitOf,
  readGates,
  writeGates,
  type TunnelSettings,
} from "../../../access/settings.ts";
import { isPassedOn } from "../../../protocol/header-names.ts";
import type { PolicyAction } from "../../../protocol/schemas/access/policies.ts";

const AUTH = { username: "ann", passwordHash: "$argon2id$…" };
const ALL: PolicyAction[] = [
  { kind: "header_set", name: "X-Team", value: "blue" },
  { kind: "rate_limit", requests_per_minute: 5, per_client_ip: false },
  { kind: "jwt_validation" },
  { kind: "deny", path_prefix: "/admin" },
];

const settings = (actions: PolicyAction[], basicAuth: TunnelSettings["basicAuth"] = null) => ({
  version: 1,
  realm: "shop",
  basicAuth,
  policy: { actions },
});
const LISTS = { tunnelId: crypto.randomUUID(), domains: [], emails: ["ann@example.com"] };
const visitor = (path = "/") => ({
  path,
  authorization: "x",
  address: "192.0.2.1",
  authority: "shop.localhost",
  cookie: null,
});

/** Checks with fixed verdicts, which tell what they were asked. */
function checks(
  password: PasswordVerdict = "right",
  token: TokenVerdict = "good",
  identity: IdentityVerdict = "allowed",
) {
  const asked: string[] = [];
  const fixed: Checks = {
    password: () => (asked.push("password"), Promise.resolve(password)),
    identity: () => (asked.push("identity"), Promise.resolve(identity)),
    token: () => (asked.push("token"), Promise.resolve(token)),
  };
  return { asked, fixed };
}

describe("the order of the gates, whatever the order of the policy", () => {
  const gates = gatesOf({ ...settings(ALL, AUTH), identityGate: LISTS }, newSeal())!;
  const down = { keysDownForMs: 1 };
  const [PASSWORD, IDENTITY] = [["password"], ["password", "identity"]];

  test.each<[string, string, PasswordVerdict, IdentityVerdict, TokenVerdict, unknown, string[]]>([
    ["a wrong password", "/admin", "wrong", "unknown", "bad", "unauthorized", PASSWORD],
    ["no pass", "/admin", "right", "unknown", "bad", "unauthorized", IDENTITY],
    ["a pass of somebody else", "/", "right", { denied: "eve" }, "bad", "forbidden", IDENTITY],
    ["a pass that can't be judged", "/", "right", down, "bad", "unavailable", IDENTITY],
    ["a denied path", "/admin", "right", "allowed", "bad", "forbidden", IDENTITY],
    ["a bad token", "/", "right", "allowed", "bad", "unauthorized", [...IDENTITY, "token"]],
    ["nothing", "/", "right", "allowed", "good", undefined, [...IDENTITY, "token"]],
  ])("%s is what counts", async (_, path, password, identity, token, code, order) => {
    const { asked, fixed } = checks(password, token, identity);
    expect((await judge(gates, visitor(path), fixed))?.code).toBe(code);
    expect(asked).toEqual(order);
  });
});

describe("a refusal says what to do", () => {
  const withPassword = gatesOf(settings([], AUTH), newSeal())!;
  const withToken = gatesOf(settings([{ kind: "jwt_validation" }]), newSeal())!;
  const refusal = (password: PasswordVerdict, token: TokenVerdict) => {
    const gates = password === "right" ? withToken : withPassword;
    return judge(gates, visitor(), checks(password, token).fixed);
  };

  test.each([
    ["wrong", "good", "unauthorized", { "www-authenticate": 'Basic realm="shop"' }],
    [{ tooManyWrongForMs: 11_001 }, "good", "rate_limited", { "retry-after": "12" }],
    [{ busyForMs: 1 }, "good", "unavailable", { "retry-after": "1" }],
    ["right", "missing", "unauthorized", { "www-authenticate": "Bearer" }],
    ["right", "bad", "unauthorized", { "www-authenticate": 'Bearer error="invalid_token"' }],
    ["right", { issuerDownForMs: 5_000 }, "unavailable", { "retry-after": "5" }],
  ] as const)("%j, %j: %s", async (password, token, code, headers) => {
    expect(await refusal(password, token)).toEqual({ code, headers });
  });
});

describe("settings", () => {
  test("that need nothing judged are no gates", () => {
    expect(gatesOf({ ...settings([]), policy: null }, newSeal())).toBeNull();
    expect(gatesOf(settings(ALL.slice(0, 2)), newSeal())).toBeNull();
    expect(gatesOf(settings(ALL), newSeal())).toMatchObject({ deny: ["/admin"], basicAuth: null });
  });

  test("of one header in two spellings mean the later one", () => {
    const twice: PolicyAction[] = [
      { kind: "header_set", name: "X-Team", value: "blue" },
      { kind: "header_set", name: "x-team", value: "red" },
    ];
    expect([...headersOf(settings(twice))]).toEqual([["x-team", "red"]]);
    expect(rateLimitOf(settings(twice))).toBeNull();
  });

  test("travel in a header line, whatever is in them", () => {
    const actions: PolicyAction[] = [{ kind: "deny", path_prefix: '/caf\u00e9 "\\ \u{1f600}' }];
    const gates = gatesOf(settings(actions, AUTH), newSeal());
    const line = writeGates(gates);
    expect(line).toMatch(/^[ -~]+$/);
    expect(readGates(line)).toEqual(gates);
    expect(readGates(writeGates(null))).toBeNull();
  });
});

describe("a verdict of the edge", () => {
  const gates = gatesOf(settings(ALL), newSeal())!;
  const newer = gatesOf(settings(ALL), newSeal())!;
  const refusal = { code: "forbidden" as const };

  test("is believed by the gates that it was judged by, and by no others", () => {
    expect(readVerdict(writeVerdict(gates, null), gates)).toBeNull();
    expect(readVerdict(writeVerdict(gates, refusal), gates)).toEqual(refusal);
    expect(readVerdict(writeVerdict(gates, null), newer)).toBeUndefined();
    expect(readVerdict(writeVerdict(gates, refusal), newer)).toBeUndefined();
    expect(isSealed(writeVerdict(gates, refusal), gates)).toBe(true);
    expect(isSealed(writeVerdict(gates, refusal), newer)).toBe(false);
  });

  test.each([
    null,
    "",
    "1",
    "pass",
    "null",
    "{}",
    "00000000-0000-4000-8000-000000000000",
    gates.seal.slice(0, -1),
    ` ${gates.seal}`,
    gates.seal.toUpperCase().replace(/\d/g, "0"),
  ])("is no %j", (judged) => {
    expect(readVerdict(judged, gates)).toBeUndefined();
  });

  test("is passed on to nobody, who could learn from it", () => {
    expect(isPassedOn(JUDGED_HEADER)).toBe(false);
    expect(isPassedOn(JUDGED_HEADER.replace("-", "_"))).toBe(false);
  });
});

test("a visitor's path is the target's own text up to its query", () => {
  const of = (url: string) =>
    visitorOf({ url, headers: new Headers() } as unknown as Request, "192.0.2.1").path;
  expect(of("http://h/a%2e%2e//b?c=/../d")).toBe("/a%2e%2e//b");
  expect(of("http://h?c")).toBe("/");
  expect(of("http://h//evil.test/x")).toBe("//evil.test/x");
});
