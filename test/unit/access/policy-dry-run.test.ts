import { describe, expect, test } from "vitest";
import {
  DryRun,
  type CapturedVisit,
  type CurrentSettings,
} from "../../../access/policy-dry-run.ts";
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
  authorization: null,
  ...changes,
});

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
    const visits = [visit(), visit({ refusal: "unauthorized", status: 401 })];
    const current = { ...under(JWT), removesAuthorization: true };
    expect(counts(run([{ ...JWT, forward_token: true }], visits, current))).toEqual([1, 1, 0, 0]);
    const other: PolicyAction = { ...JWT, allowed_audiences: ["shop"] };
    expect(counts(run([other], visits, current))).toEqual([0, 0, 2, 0]);
  });

  test("admits what only the current policy refused, and says when another check may refuse it", () => {
    const visits = [
      visit({ path: "/admin", refusal: "forbidden", status: 403 }),
      visit({ refusal: "forbidden", status: 403 }),
      visit({ refusal: "maintenance", status: 503 }),
    ];
    const result = run([], visits, under(DENY));
    expect(counts(result)).toEqual([1, 0, 2, 1]);
    expect(result.examples.map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ["allowed", null],
      ["unknown", "other_check"],
      ["unknown", "other_check"],
    ]);
    const earlier = { ...under(DENY), sinceMs: MINUTE + 1 };
    expect(counts(run([], visits, earlier))).toEqual([0, 0, 3, 0]);
  });

  test("is no change for a request that was refused with the same code", () => {
    const visits = [visit({ path: "/admin", refusal: "forbidden", status: 403 })];
    expect(counts(run([DENY], visits, under(DENY)))).toEqual([0, 1, 0, 0]);
  });

  test("counts no request for a header that a later action sets", () => {
    const { rules } = run([SET, { ...SET, name: "x-team", value: "red" }], [visit()]);
    expect(rules.map(({ matched }) => matched)).toEqual([0, 1]);
  });

  test("lists a bounded number of examples, those that change first", () => {
    const same = visit({ path: "/admin", refusal: "forbidden", status: 403 });
    const visits = Array.from({ length: 2 * DRY_RUN_MAX_EXAMPLES }, (_, at) => ({
      ...same,
      ...(at === 0 && { refusal: null, status: 200 }),
    }));
    const { examples } = run([DENY], visits, under(DENY));
    expect(examples).toHaveLength(DRY_RUN_MAX_EXAMPLES);
    expect(examples.map(({ changed }) => changed).lastIndexOf(true)).toBe(0);
  });

  test("without requests has no beginning", () => {
    expect(run([DENY], [])).toMatchObject({ evaluated: 0, since: null, examples: [] });
  });
});
