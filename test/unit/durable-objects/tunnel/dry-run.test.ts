import { afterEach, expect, test, vi } from "vitest";
import type { CapturedVisit } from "../../../../access/policy-dry-run.ts";
import { dryRunPolicy } from "../../../../durable-objects/tunnel/captures/reading/dry-run.ts";
import type { PolicyAction } from "../../../../protocol/schemas/access/policies.ts";

afterEach(() => void vi.unstubAllGlobals());

/** As docs/api.md says. */
const AMBIGUOUS_MAX_CHARS = 524_288;
const AMBIGUOUS_PATH = "/%61".repeat(1_000);
const DENY: PolicyAction = { kind: "deny", path_prefix: "/admin" };
const SET: PolicyAction = { kind: "header_set", name: "X-Team", value: "blue" };
const REQUESTS = 400;

const visits = Array.from({ length: REQUESTS }, (_, index): CapturedVisit => {
  const path = index % 2 === 0 ? AMBIGUOUS_PATH : "/plain";
  const settings = { refusal: null, refusedBy: null, authorization: null };
  return {
    id: `${index}`,
    atMs: index,
    method: "GET",
    path,
    address: "",
    status: 200,
    ...settings,
  };
});

function run(action: PolicyAction) {
  vi.stubGlobal("scheduler", { wait: () => Promise.resolve() });
  const request = { policy: { actions: [action] }, limit: REQUESTS };
  const current = { policy: null, sinceMs: 0, removesAuthorization: false };
  return dryRunPolicy(request, { listVisits: () => Promise.resolve(visits) }, current);
}

test("a dry run evaluates the newest requests whose ambiguous paths can be read in its time", async () => {
  const { evaluated, since } = await run(DENY);
  const ambiguous = Math.floor(AMBIGUOUS_MAX_CHARS / AMBIGUOUS_PATH.length);
  expect(evaluated).toBe(2 * ambiguous + 1);
  expect(since).toBe(new Date(REQUESTS - evaluated).toISOString());
});

test("a policy that denies no path is evaluated on all requests", async () => {
  expect((await run(SET)).evaluated).toBe(REQUESTS);
});
