/** The deliveries to a receiver: the stored ones, then new ones as they arrive (long polls). */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useReducer, useState } from "react";
import type { Delivery, DeliveryPage } from "../../../../protocol/schemas/webhooks.ts";
import { receiverQuery } from "../../../api/receivers.ts";
import { RequestError } from "../../../api/request.ts";
import { load } from "../../../api/session.ts";

/** The newest deliveries that the page's memory holds; older ones are dropped. */
const DELIVERIES_SHOWN_MAX = 500;
/** In base64. */
const BODIES_SHOWN_MAX_CHARS = 32 * 1024 * 1024;
/** Pages of stored deliveries that are loaded before the user is asked whether to go on. */
const STORED_PAGES_MAX = 10;
const PAGE_ROWS = 100;
const LONG_POLL_SECONDS = 25;
/** The least time between two polls. One can end early without a delivery, as when the server restarts. */
const POLL_INTERVAL_MIN_MS = 1_000;
/** The pause after the first failure. It doubles with each further one, up to the maximum. */
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** The position before the first delivery. */
const FIRST_CURSOR = "0";

export interface DeliveryFeed {
  /** The newest first. */
  deliveries: readonly Delivery[];
  /** `paused`: more are stored, which `resume` loads. `retrying`: the server can't be reached now. */
  phase: "loading" | "live" | "paused" | "retrying" | "failed";
  error: unknown;
  resume: () => void;
}

interface State {
  deliveries: readonly Delivery[];
  phase: DeliveryFeed["phase"];
  error: unknown;
}

type Change =
  | { type: "reset" }
  | { type: "arrived"; page: readonly Delivery[] }
  | { type: "phase"; phase: State["phase"]; error?: unknown };

const INITIAL_STATE: State = { deliveries: [], phase: "loading", error: undefined };

function reduce(state: State, change: Change): State {
  switch (change.type) {
    case "reset":
      return INITIAL_STATE;
    case "arrived":
      return {
        ...state,
        deliveries: keepNewest([...change.page.toReversed(), ...state.deliveries]),
      };
    case "phase":
      return { ...state, phase: change.phase, error: change.error };
  }
}

/** The newest deliveries within both bounds. The newest one stays, however large it is. */
function keepNewest(deliveries: readonly Delivery[]): readonly Delivery[] {
  let chars = 0;
  const end = deliveries.findIndex(({ body }, index) => {
    chars += body.length;
    return index > 0 && (index >= DELIVERIES_SHOWN_MAX || chars > BODIES_SHOWN_MAX_CHARS);
  });
  return end === -1 ? deliveries : deliveries.slice(0, end);
}

/** @param since RFC 3339; null: all that are stored. */
export function useDeliveries(receiverId: string, since: string | null): DeliveryFeed {
  const queries = useQueryClient();
  const [state, change] = useReducer(reduce, INITIAL_STATE);
  /** The cursor from which the user resumed a paused feed. It belongs to the range that was selected then. */
  const [resumption, setResumption] = useState({ since, after: FIRST_CURSOR });
  const after = resumption.since === since ? resumption.after : FIRST_CURSOR;

  useEffect(() => {
    const stop = new AbortController();
    if (after === FIRST_CURSOR) change({ type: "reset" });
    void follow({
      receiverId,
      since,
      after,
      signal: stop.signal,
      onChange: (next) => {
        if (stop.signal.aborted) return;
        change(next);
        if (next.type === "arrived") void queries.invalidateQueries(receiverQuery(receiverId));
      },
    });
    return () => stop.abort();
  }, [receiverId, since, after, resumption, queries]);

  const resume = () => setResumption({ since, after: state.deliveries[0]?.cursor ?? FIRST_CURSOR });
  return { ...state, resume };
}

interface FollowOptions {
  receiverId: string;
  since: string | null;
  after: string;
  signal: AbortSignal;
  onChange: (change: Change) => void;
}

/**
 * Loads the stored deliveries, then polls for new ones. Ends when it is aborted or paused, and after an error that a retry
 * can't solve.
 */
async function follow({
  receiverId,
  since,
  after,
  signal,
  onChange,
}: FollowOptions): Promise<void> {
  let cursor = after;
  let pages = 0;
  let failures = 0;
  let isLive = false;
  onChange({ type: "phase", phase: "loading" });
  while (!signal.aborted) {
    if (isLive) await waitUntilVisible(signal);
    const startedMs = performance.now();
    try {
      const wait = isLive ? LONG_POLL_SECONDS : 0;
      const page = await readPage(receiverId, { after: cursor, since, wait }, signal);
      if (failures > 0 && isLive) onChange({ type: "phase", phase: "live" });
      failures = 0;
      cursor = page.cursor;
      if (page.events.length > 0) onChange({ type: "arrived", page: page.events });
      else if (isLive) await sleep(startedMs + POLL_INTERVAL_MIN_MS - performance.now(), signal);
      else onChange({ type: "phase", phase: "live" });
      isLive ||= page.events.length === 0;
      pages += 1;
      if (!isLive && pages >= STORED_PAGES_MAX) return onChange({ type: "phase", phase: "paused" });
    } catch (error) {
      if (signal.aborted) return;
      if (!isTemporary(error)) return onChange({ type: "phase", phase: "failed", error });
      onChange({ type: "phase", phase: "retrying" });
      failures += 1;
      await sleep(Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (failures - 1)), signal);
    }
  }
}

interface PageRequest {
  /** The cursor of the last delivery that is already loaded. */
  after: string;
  since: string | null;
  /** How many seconds the server waits for a delivery when there is none; 0: not at all. */
  wait: number;
}

function readPage(
  receiverId: string,
  { after, since, wait }: PageRequest,
  signal: AbortSignal,
): Promise<DeliveryPage> {
  const query = new URLSearchParams({ after, limit: String(PAGE_ROWS), wait: String(wait) });
  if (since !== null) query.set("since", since);
  return load(`/webhook-receivers/${receiverId}/events?${query}`, signal);
}

function isTemporary(error: unknown): boolean {
  if (!(error instanceof RequestError)) return false;
  return ["unreachable", "unavailable", "rate_limited"].includes(error.code);
}

/**
 * Resolves when the page is visible, or as soon as the signal aborts. A browser has six connections for all of its pages over
 * HTTP/1.1: hidden ones would hold them with their polls, and no page could load anything else.
 */
function waitUntilVisible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (document.visibilityState === "hidden" && !signal.aborted) return;
      document.removeEventListener("visibilitychange", check);
      signal.removeEventListener("abort", check);
      resolve();
    };
    document.addEventListener("visibilitychange", check);
    signal.addEventListener("abort", check);
    check();
  });
}

/** Resolves after the time, or as soon as the signal aborts. A negative time is no wait. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, ms));
    signal.addEventListener("abort", end);
  });
}
