import { describe, expect, test, vi } from "vitest";
import {
  DryRun,
  type CapturedVisit,
  type CurrentSettings,
} from "../../../access/policy-dry-run.ts";
import { STATUS_BY_CODE } from "../../../protocol/errors.ts";
import { RATE_WINDOW_MS } from "../../../protocol/limits.ts";
import type { PolicyAction } from "../../../protocol/schemas/access/policies.ts";
import {
  DRY_RUN_MAX_EXAMPLES,
  PolicyDryRun,
} from "../../../protocol/schemas/access/policy-dry-run.ts";
import { REDACTED } from "../../../protocol/schemas/inspector/captures.ts";

const MINUTE = 1_000 * RATE_WINDOW_MS;
const NO_SETTINGS: CurrentSettings = { policy: null, sinceMs: 0, removesAuthorization: false };
const DENY: PolicyAction = { kind: "deny", path_prefix: "/admin" };
const JWT: PolicyAction = { kind: "jwt_validation" };
const LIMIT: PolicyAction = { kind: "rate_limit", requests_per_minute: 2, per_client_ip: true };
const SET: PolicyAction = { kind: "header_set", name: "X-Team", value: "blue" };

const visit = (changes: Partial<CapturedVisit> = {}): CapturedVisit => ({
  id: crypto.randomUUID(),
  atMs: MINUTE,
  method: "GET",
  path: "/",
  address: "192.0.2.1",
  status: 200,
  refusal: null,
  refusedBy: null,
  authorization: null,
  ...changes,
});

const refused = (
  refusal: CapturedVisit["refusal"],
  refusedBy: CapturedVisit["refusedBy"],
  path = "/",
) => visit({ refusal, refusedBy, path, status: refusal && STATUS_BY_CODE[refusal] });

function run(
  actions: PolicyAction[],
  visits: CapturedVisit[],
  current: Partial<CurrentSettings> = {},
): PolicyDryRun {
  const dryRun = new DryRun({ actions }, { ...NO_SETTINGS, ...current });
  for (const each of visits) dryRun.add(each);
  return PolicyDryRun.parse(dryRun.result);
}

const under = (...actions: PolicyAction[]) => ({ policy: { actions } });
const counts = ({ allowed, refused, unknown, changed }: PolicyDryRun) => [
  allowed,
  refused,
  unknown,
  changed,
];

describe("a dry run", () => {
  test("reads an ambiguous path once, however many actions deny paths", () => {
    const path = "/a/%2e%2e;x\\%5c/../".repeat(200);
    const deny = Array.from({ length: 16 }, (_, i): PolicyAction => {
      return { kind: "deny", path_prefix: i === 15 ? "/" : `/never/${i}` };
    });
    const read = vi.spyOn(String.prototype, "charCodeAt");
    const { rules } = run(deny, [visit({ path })]);
    const reads = read.mock.calls.length;
    read.mockRestore();
    expect(rules.at(-1)).toMatchObject({ matched: 1 });
    expect(reads).toBeLessThan(2 * path.length);
  });

  test("names the action that would refuse a request, in every spelling of its path", () => {
    const paths = ["/", "/a%64min", "/x/..;/ADMIN", `/${"%61".repeat(2_000)}`];
    const result = run(
      [SET, DENY],
      paths.map((path) => visit({ path })),
    );
    expect(counts(result)).toEqual([1, 3, 0, 3]);
    expect(result.rules).toEqual([
      { kind: "header_set", matched: 1, unknown: 0 },
      { kind: "deny", matched: 3, unknown: 0 },
    ]);
    expect(result.examples).toHaveLength(3);
    expect(result.examples.at(-1)).toMatchObject({
      path: "/a%64min",
      status: 200,
      outcome: "refused",
      rule: 1,
      new_status: 403,
      changed: true,
      reason: null,
    });
    expect(result.examples[0]!.path).toHaveLength(512);
  });

  test("counts requests by the minute in which they were captured, and by address", () => {
    const visits = [
      ...[1, 2, 3].map((ms) => visit({ atMs: MINUTE + ms })),
      visit({ atMs: MINUTE + 4, address: "192.0.2.2" }),
      visit({ atMs: MINUTE + RATE_WINDOW_MS }),
    ];
    expect(counts(run([LIMIT], visits))).toEqual([4, 1, 0, 1]);
    expect(counts(run([{ ...LIMIT, per_client_ip: false }], visits))).toEqual([3, 2, 0, 2]);
  });

  test("does not count requests that an earlier action refuses", () => {
    const visits = [1, 2, 3].map((ms) => visit({ atMs: MINUTE + ms, path: "/admin" }));
    const result = run([LIMIT, DENY], [...visits, visit({ atMs: MINUTE + 4 })]);
    expect(result.rules.map(({ matched }) => matched)).toEqual([0, 3]);
  });

  test("refuses requests without a token, and does not guess whether a token is valid", () => {
    const result = run(
      [JWT],
      [
        visit(),
        visit({ authorization: "Basic YTpi" }),
        visit({ authorization: REDACTED }),
        visit({ authorization: "Bearer a.b.c" }),
      ],
    );
    expect(counts(result)).toEqual([0, 2, 2, 2]);
    expect(result.rules).toEqual([{ kind: "jwt_validation", matched: 2, unknown: 2 }]);
    expect(result.examples.map(({ reason }) => reason)).toEqual([null, null, "token", "token"]);
  });

  test("does not take a token for missing that a gate may have removed", () => {
    expect(counts(run([JWT], [visit()], { removesAuthorization: true }))).toEqual([0, 0, 1, 0]);
    expect(counts(run([JWT], [visit()], { sinceMs: MINUTE + 1 }))).toEqual([0, 0, 1, 0]);
  });

  test("repeats the decision of the current policy about a token, if the action stays the same", () => {
    const visits = [visit(), refused("unauthorized", "jwt_validation")];
    const current = { ...under(JWT), removesAuthorization: true };
    expect(counts(run([{ ...JWT, forward_token: true }], visits, current))).toEqual([1, 1, 0, 0]);
    const other: PolicyAction = { ...JWT, allowed_audiences: ["shop"] };
    expect(counts(run([other], visits, current))).toEqual([0, 0, 2, 0]);
  });

  test("admits what only a policy refused, the current one or an earlier one", () => {
    const visits = [
      refused("forbidden", "deny", "/admin"),
      refused("unauthorized", "jwt_validation"),
      refused("rate_limited", "rate_limit"),
    ];
    expect(counts(run([], visits, under(DENY, JWT, LIMIT)))).toEqual([3, 0, 0, 3]);
    expect(counts(run([], visits, { sinceMs: MINUTE + 1 }))).toEqual([3, 0, 0, 3]);
  });

  test("does not know whether another check refuses a request again, whatever its code is", () => {
    const visits = [
      refused("unauthorized", "password"),
      refused("rate_limited", "password"),
      refused("forbidden", "ip_allowlist", "/admin"),
      refused("forbidden", "sign_in", "/admin"),
      refused("maintenance", "maintenance"),
      refused("unavailable", null),
    ];
    const current = under(DENY, JWT, LIMIT);
    for (const actions of [[], current.policy.actions]) {
      const result = run(actions, visits, current);
      expect(counts(result)).toEqual([0, 0, visits.length, 0]);
      expect(new Set(result.examples.map(({ reason }) => reason))).toEqual(
        new Set(["other_check"]),
      );
    }
  });

  test("is no change for a request that was refused with the same code", () => {
    const visits = [refused("forbidden", "deny", "/admin")];
    expect(counts(run([DENY], visits, under(DENY)))).toEqual([0, 1, 0, 0]);
  });

  test("counts no request for a header that a later action sets", () => {
    const { rules } = run([SET, { ...SET, name: "x-team", value: "red" }], [visit()]);
    expect(rules.map(({ matched }) => matched)).toEqual([0, 1]);
  });

  test("lists a bounded number of examples, those that change first", () => {
    const same = refused("forbidden", "deny", "/admin");
    const visits = Array.from({ length: 2 * DRY_RUN_MAX_EXAMPLES }, (_, at) => ({
      ...same,
      ...(at === 0 && { refusal: null, refusedBy: null, status: 200 }),
    }));
    const { examples } = run([DENY], visits, under(DENY));
    expect(examples).toHaveLength(DRY_RUN_MAX_EXAMPLES);
    expect(examples.map(({ changed }) => changed).lastIndexOf(true)).toBe(0);
  });

  test("without requests has no beginning", () => {
    expect(run([DENY], [])).toMatchObject({ evaluated: 0, since: null, examples: [] });
  });
});
