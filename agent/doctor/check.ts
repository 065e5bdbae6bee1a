/** The checks of `underpass doctor`: their names, their results, and the time that each may take. */
import { getErrorCode } from "../../shared/error-message.ts";
import { PROGRAM } from "../program.ts";

/** In the order of the output. The keys are the names in `--json`. */
export const CHECK_LABELS = {
  settings: "Settings",
  node: "Node.js",
  files: "Open files",
  local: "Local server",
  proxy: "Proxy",
  dns: "DNS",
  tcp: "TCP",
  tls: "TLS",
  http: "API",
  clock: "Clock",
  websocket: "WebSocket",
  version: "Version",
  token: "Token",
  relay: "Relay",
  latency: "Latency",
  throughput: "Throughput",
} as const;

export type CheckName = keyof typeof CHECK_LABELS;

interface CheckResult {
  /** A `warning` may need attention; a `problem` keeps tunnels from working. */
  status: "ok" | "warning" | "problem" | "skipped";
  /** The attempt that the check made. Empty when it was skipped. */
  tried: string;
  /** The result of the attempt. */
  result: string;
  /** The next step of the user; null when there is nothing to do. */
  advice: string | null;
}

/** A check's result, and what the checks after it need. */
export interface Outcome<Value = unknown> extends CheckResult {
  /** undefined when the checks after this one would make no sense. */
  value?: Value;
}

export type Report = { check: CheckName } & CheckResult;

export function ok<Value>(tried: string, result: string, value?: Value): Outcome<Value> {
  return { status: "ok", tried, result, advice: null, ...(value === undefined ? {} : { value }) };
}

export function warning<Value>(
  tried: string,
  result: string,
  advice: string,
  value?: Value,
): Outcome<Value> {
  return { status: "warning", tried, result, advice, ...(value === undefined ? {} : { value }) };
}

export function problem(tried: string, result: string, advice: string): Outcome<never> {
  return { status: "problem", tried, result, advice };
}

export function skipped<Value>(reason: string, value?: Value): Outcome<Value> {
  return {
    status: "skipped",
    tried: "",
    result: reason,
    advice: null,
    ...(value === undefined ? {} : { value }),
  };
}

/** How long a check may take to say what it was waiting for when its time has passed. */
const EXPLAIN_MAX_MS = 250;

/** Runs a check that takes about `maxMs` at most. Its signal is aborted at that time. */
export async function runBounded<Value>(
  maxMs: number,
  check: (signal: AbortSignal) => Promise<Outcome<Value>>,
): Promise<Outcome<Value>> {
  const signal = AbortSignal.timeout(maxMs);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Outcome<never>>((resolve) => {
    timer = setTimeout(() => {
      resolve(
        problem(
          `waiting for at most ${maxMs / 1000} s`,
          "there was no answer in time",
          `Run ${PROGRAM} doctor again. If this repeats, the network is very slow or loses packets.`,
        ),
      );
    }, maxMs + EXPLAIN_MAX_MS);
  });
  try {
    return await Promise.race([check(signal), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Runs a check after another one.
 * @param reason why it is skipped when the other one did not succeed.
 */
export async function runAfter<Before, Value>(
  before: Promise<Outcome<Before>>,
  reason: string,
  check: (value: Before) => Promise<Outcome<Value>>,
): Promise<Outcome<Value>> {
  const { value, status, result } = await before;
  if (value !== undefined) return check(value);
  return skipped(status === "skipped" ? result : reason);
}

/** The code of a system error, such as ECONNREFUSED; of a failed fetch, that of its cause. */
export function findErrorCode(error: unknown): string {
  if (!(error instanceof Error)) return "";
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  return (inner instanceof Error && findErrorCode(inner)) || (getErrorCode(error) ?? "");
}
