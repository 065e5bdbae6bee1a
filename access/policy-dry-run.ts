/**
 * Evaluates a traffic policy on captured requests. A capture does not contain everything that the actions
 * read, so a decision can be unknown.
 */
import { STATUS_BY_CODE, type ErrorCode } from "../protocol/errors.ts";
import {
  PolicyAction,
  type JwtValidation,
  type TrafficPolicy,
} from "../protocol/schemas/access/policies.ts";
import {
  DRY_RUN_MAX_EXAMPLES,
  DRY_RUN_PATH_MAX_CHARS,
  type DryRunExample,
  type PolicyDryRun,
} from "../protocol/schemas/access/policy-dry-run.ts";
import { REDACTED, RefusedBy } from "../protocol/schemas/inspector/captures.ts";
import { parseBearerToken } from "../shared/bearer-token.ts";
import { CheckedPath } from "./paths/denied-paths.ts";
import { compilePolicy, type PolicyEffects } from "./policy-actions.ts";
import { RateWindow } from "./rate-window.ts";

/** A visitor's request as it was captured. */
export interface CapturedVisit {
  id: string;
  atMs: number;
  method: string;
  path: string;
  address: string;
  status: number | null;
  /** Why a gate or a limit of the tunnel refused it; null when it was admitted. */
  refusal: ErrorCode | null;
  /** Which of them did, if it has a name. */
  refusedBy: RefusedBy | null;
  /** As it was captured: a gate may have removed it. */
  authorization: string | null;
}

/** The settings that are in force. */
export interface CurrentSettings {
  policy: TrafficPolicy | null;
  /** Earlier captures were decided by other settings. */
  sinceMs: number;
  /** Whether a gate removes the `Authorization` header. */
  removesAuthorization: boolean;
}

type Decision =
  | { outcome: "allowed" }
  | { outcome: "refused"; rule: number; code: ErrorCode }
  | { outcome: "unknown"; rule: number | null; reason: "token" | "other_check" };

interface DenyRule {
  rule: number;
  /** Its prefix and those of all earlier rules. One list for all requests: `checkPath` compiles each list once. */
  prefixes: readonly string[];
}

interface CurrentRules extends CurrentSettings {
  jwt: string | null;
}

/** Other checks refuse requests with the same codes, but under other names. */
const POLICY_KINDS: ReadonlySet<string | null> = new Set(
  PolicyAction.options.map(({ shape }) => shape.kind.value),
);

/** Evaluates requests one by one, oldest first: rate limits depend on the order. */
export class DryRun {
  readonly #policy: TrafficPolicy;
  readonly #effects: PolicyEffects;
  readonly #denyRules: DenyRule[];
  readonly #jwt: string | null;
  readonly #current: CurrentRules;
  readonly #window = new RateWindow([]);
  readonly #decided: { visit: CapturedVisit; decision: Decision }[] = [];

  constructor(policy: TrafficPolicy, current: CurrentSettings) {
    this.#policy = policy;
    this.#effects = compilePolicy(policy);
    const { deny } = this.#effects;
    this.#denyRules = policy.actions
      .flatMap(({ kind }, rule) => (kind === "deny" ? [rule] : []))
      .map((rule, index) => ({ rule, prefixes: deny.slice(0, index + 1) }));
    this.#jwt = formatTokenRule(this.#effects.jwt);
    this.#current = { ...current, jwt: formatTokenRule(compilePolicy(current.policy).jwt) };
  }

  add(visit: CapturedVisit): void {
    this.#decided.push({ visit, decision: this.#decide(visit) });
  }

  get result(): PolicyDryRun {
    const decisions = this.#decided.map(({ decision }) => decision);
    const count = (outcome: Decision["outcome"]) =>
      decisions.filter((decision) => decision.outcome === outcome).length;
    const examples = this.#decided.map(toExample).reverse();
    const listed = examples.filter(({ outcome, changed }) => changed || outcome !== "allowed");
    const oldest = this.#decided[0]?.visit;
    return {
      evaluated: decisions.length,
      allowed: count("allowed"),
      refused: count("refused"),
      unknown: count("unknown"),
      changed: examples.filter(({ changed }) => changed).length,
      since: oldest === undefined ? null : new Date(oldest.atMs).toISOString(),
      rules: this.#policy.actions.map(({ kind }, rule) => this.#countRule(kind, rule)),
      examples: [
        ...listed.filter(({ changed }) => changed),
        ...listed.filter(({ changed }) => !changed),
      ].slice(0, DRY_RUN_MAX_EXAMPLES),
    };
  }

  // ── Inside: decisions, in the order in which the object authorizes ──

  #decide(visit: CapturedVisit): Decision {
    if (visit.refusal !== null && !POLICY_KINDS.has(visit.refusedBy)) {
      return { outcome: "unknown", rule: null, reason: "other_check" };
    }
    const { rateLimit } = this.#effects;
    const decision = this.#decideByPath(visit) ?? this.#decideByToken(visit);
    if (decision !== null) return decision;
    if (rateLimit === null) return { outcome: "allowed" };
    const address = rateLimit.per_client_ip ? visit.address : null;
    const waitMs = this.#window.take(address, rateLimit.requests_per_minute, visit.atMs);
    if (waitMs === 0) return { outcome: "allowed" };
    return { outcome: "refused", rule: this.#findRule("rate_limit"), code: "rate_limited" };
  }

  #decideByPath(visit: CapturedVisit): Decision | null {
    const all = this.#denyRules.at(-1);
    if (all === undefined) return null;
    const path = new CheckedPath(visit.path);
    const isDenied = ({ prefixes }: DenyRule) => path.check(prefixes) !== "allowed";
    if (!isDenied(all)) return null;
    // The first rule that denies the path, by bisection: comparing an ambiguous path can take a millisecond.
    let [from, to] = [0, this.#denyRules.length - 1];
    while (from < to) {
      const middle = Math.floor((from + to) / 2);
      if (isDenied(this.#denyRules[middle]!)) to = middle;
      else from = middle + 1;
    }
    return { outcome: "refused", rule: this.#denyRules[from]!.rule, code: "forbidden" };
  }

  /** @returns null when the request passes. */
  #decideByToken(visit: CapturedVisit): Decision | null {
    if (this.#jwt === null) return null;
    const rule = this.#findRule("jwt_validation");
    const refused = { outcome: "refused", rule, code: "unauthorized" } as const;
    const { refusal, authorization } = visit;
    // The same check has already decided about this request.
    if (this.#current.jwt === this.#jwt && this.#isDecidedByCurrent(visit)) {
      if (refusal === null || refusal === "rate_limited") return null;
      if (refusal === "unauthorized") return refused;
    }
    const isTokenMissing =
      authorization === null
        ? this.#isDecidedByCurrent(visit) && !this.#current.removesAuthorization
        : authorization !== REDACTED && parseBearerToken(authorization) === null;
    return isTokenMissing ? refused : { outcome: "unknown", rule, reason: "token" };
  }

  #isDecidedByCurrent({ atMs }: CapturedVisit): boolean {
    return atMs >= this.#current.sinceMs;
  }

  // ── Inside: counts ──

  #findRule(kind: "jwt_validation" | "rate_limit"): number {
    return this.#policy.actions.findIndex((action) => action.kind === kind);
  }

  #countRule(kind: string, rule: number): PolicyDryRun["rules"][number] {
    const decisions = this.#decided.map(({ decision }) => decision);
    const unknown = decisions.filter((it) => it.outcome === "unknown" && it.rule === rule).length;
    // Actions of other kinds change the requests that all of them admit.
    if (RefusedBy.safeParse(kind).success) {
      const isMatch = (it: Decision) => it.outcome === "refused" && it.rule === rule;
      return { kind, matched: decisions.filter(isMatch).length, unknown };
    }
    const allowed = decisions.filter(({ outcome }) => outcome === "allowed").length;
    return { kind, matched: this.#isReplacedLater(rule) ? 0 : allowed, unknown };
  }

  /** Whether a later action sets the same header: its value applies. */
  #isReplacedLater(rule: number): boolean {
    const [action, ...later] = this.#policy.actions.slice(rule);
    return later.some(
      (other) =>
        other.kind === "header_set" &&
        action?.kind === "header_set" &&
        other.name.toLowerCase() === action.name.toLowerCase(),
    );
  }
}

/** Rules with the same text accept the same tokens. */
function formatTokenRule(rule: JwtValidation | null): string | null {
  return rule && JSON.stringify([rule.allowed_issuers, rule.allowed_audiences]);
}

function toExample({
  visit,
  decision,
}: {
  visit: CapturedVisit;
  decision: Decision;
}): DryRunExample {
  const { id, method, status, refusal } = visit;
  const { outcome } = decision;
  const newRefusal = outcome === "refused" ? decision.code : null;
  return {
    id,
    timestamp: new Date(visit.atMs).toISOString(),
    method,
    status,
    client_ip: visit.address,
    path: visit.path.slice(0, DRY_RUN_PATH_MAX_CHARS),
    outcome,
    changed: outcome !== "unknown" && newRefusal !== refusal,
    rule: outcome === "allowed" ? null : decision.rule,
    new_status: newRefusal && STATUS_BY_CODE[newRefusal],
    reason: outcome === "unknown" ? decision.reason : null,
  };
}
