/** Whether the service's API answers, and what its answer says about the clock and the version. */
import { fetch as fetchWithUndici } from "undici";
import { compareVersions } from "../compare-versions.ts";
import { explainError } from "../error-message.ts";
import { createDispatcher } from "../outgoing/dispatcher.ts";
import type { TrustedAuthorities } from "../outgoing/trusted-authorities.ts";
import { Health } from "../../protocol/schemas/health.ts";
import { SERVICE_VERSION } from "../../protocol/version.ts";
import { parseJson } from "../../shared/json.ts";
import { ok, problem, skipped, warning, type Outcome } from "./check.ts";
import type { Route } from "./route.ts";
import { formatUpdateAdvice, formatUpdateCommand } from "../update-advice.ts";
import { PROGRAM } from "../program.ts";

/** Tokens and certificates are checked against the time: a larger difference makes them invalid too early or too late. */
const CLOCK_SKEW_MAX_MS = 60_000;
const BODY_SHOWN_CHARS = 100;
const BODY_READ_MAX_BYTES = 64 * 1024;

/** A server whose API answers. */
interface ApiRoute extends Route {
  version: string;
  /** How much later the server's clock is than this machine's; null when the answer has no date. */
  clockSkewMs: number | null;
}

/** One function sends all requests, so that later ones measure a connection that is already open. */
export type Fetch = (
  url: URL,
  init: { headers?: Record<string, string>; signal: AbortSignal },
) => ReturnType<typeof fetchWithUndici>;

export function createFetch(authorities: TrustedAuthorities | undefined): Fetch {
  const dispatcher = createDispatcher(authorities);
  return (url, init) => fetchWithUndici(url.href, { ...init, redirect: "manual", dispatcher });
}

export async function checkHttp(
  route: Route,
  fetch: Fetch,
  signal: AbortSignal,
): Promise<Outcome<ApiRoute>> {
  const url = new URL("/health", route.server);
  const tried = `GET ${url.href}`;
  const startedAtMs = Date.now();
  let response: Awaited<ReturnType<Fetch>>;
  let text: string;
  try {
    response = await fetch(url, { signal, headers: { accept: "application/json" } });
    text = await readStart(response);
  } catch (error) {
    const reason = signal.aborted ? "no answer in time" : explainError(error);
    return problem(
      tried,
      `the request failed: ${reason}`,
      "Check that the server is running; its log says more.",
    );
  }
  const health = Health.safeParse(parseJson(text));
  if (response.status === 200 && health.success) {
    const date = Date.parse(response.headers.get("date") ?? "");
    // The header has whole seconds, and the answer takes a while to arrive.
    const nowMs = (startedAtMs + Date.now()) / 2 - 500;
    const clockSkewMs = Number.isNaN(date) ? null : date - nowMs;
    const { version } = health.data;
    return ok(tried, `${route.server.origin} is an Underpass server`, {
      ...route,
      version,
      clockSkewMs,
    });
  }
  return describeOtherServer(tried, route, response, text);
}

function describeOtherServer(
  tried: string,
  { server }: Route,
  { status, headers }: Awaited<ReturnType<Fetch>>,
  text: string,
): Outcome<never> {
  const location = headers.get("location");
  const target =
    location !== null && URL.canParse(location, server.href) ? new URL(location, server) : null;
  const shown = formatBody(text);
  if (status === 511 || (target !== null && target.hostname !== server.hostname)) {
    const to = location === null ? "" : ` and leads to ${location}`;
    return problem(
      tried,
      `a login page of this network answers (${status}${to})`,
      `Open any web page in a browser, log in to the network, and run ${PROGRAM} doctor again.`,
    );
  }
  if (target !== null) {
    return problem(
      tried,
      `the answer is a redirect (${status}) to ${location}`,
      `Use that address: --server ${target.origin}`,
    );
  }
  if (/html/i.test(headers.get("content-type") ?? "")) {
    return problem(
      tried,
      `a web page answers instead of the API (${status}): ${shown}`,
      "If this network has a login page, open a web page in a browser and log in. Otherwise another web server has this address: check --server.",
    );
  }
  if (status >= 500) {
    return problem(
      tried,
      `the server answers ${status}: ${shown}`,
      "Try again in a minute. On your own server, look into its log.",
    );
  }
  return problem(
    tried,
    `this is not an Underpass server: it answers ${status} ${shown}`,
    "Check the server's address and port.",
  );
}

export function checkClock({ clockSkewMs }: ApiRoute): Outcome {
  const tried = "comparing this machine's clock with the header Date of the server";
  if (clockSkewMs === null) return skipped("the server's answer has no header Date");
  const seconds = Math.round(Math.abs(clockSkewMs) / 1000);
  if (Math.abs(clockSkewMs) <= CLOCK_SKEW_MAX_MS) {
    return ok(tried, seconds <= 2 ? "the clocks agree" : `the clocks differ by ${seconds} s`);
  }
  const direction = clockSkewMs > 0 ? "behind" : "ahead of";
  return warning(
    tried,
    `this machine's clock is ${formatDuration(seconds)} ${direction} the server's`,
    "Set this machine's clock by the network (NTP): tokens and certificates depend on it.",
  );
}

/** @param isRefused whether the server has refused the agent's version of the protocol. */
export function checkVersion({ version, server }: ApiRoute, isRefused: boolean): Outcome {
  const tried = "comparing the version of this agent with the server's";
  const result = `agent ${SERVICE_VERSION}, server ${version}`;
  const order = compareVersions(version, SERVICE_VERSION);
  const update =
    order < 0
      ? `The server is older than this agent: update the server, or install its version of the agent: ${formatUpdateCommand(server.origin)}`
      : formatUpdateAdvice(server.origin);
  if (isRefused)
    return problem(tried, `${result}: they have no protocol version in common`, update);
  if (order === 0) return ok(tried, result);
  return warning(
    tried,
    `${result}: they work together, but ${order < 0 ? "the server lacks newer features" : "the agent lacks newer features"}`,
    update,
  );
}

function formatDuration(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
}

/** The beginning of a text from the network, on one line. */
export function formatBody(text: string): string {
  const title = /<title[^>]*>([^<]*)/i.exec(text)?.[1];
  const line = (title ?? text.replaceAll(/<[^>]*>/g, " ")).replaceAll(/\s+/g, " ").trim();
  if (line === "") return "(empty)";
  return `"${line.length > BODY_SHOWN_CHARS ? `${line.slice(0, BODY_SHOWN_CHARS)}…` : line}"`;
}

/** Reads at most `BODY_READ_MAX_BYTES`: another server may send an endless response. */
async function readStart(response: Awaited<ReturnType<Fetch>>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk as Uint8Array);
    bytes += (chunk as Uint8Array).byteLength;
    if (bytes > BODY_READ_MAX_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}
