/** Looks up the DNS record that verifies a domain, repeatedly, once the user says that it is published. */
import { useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { domainsQuery } from "../../api/domains.ts";
import { getUserMessage, RequestError } from "../../api/request.ts";
import { call } from "../../api/session.ts";
import { notify } from "../../ui/feedback/notifications.tsx";

/** A new record is often visible within seconds, and sometimes after an hour. */
const FIRST_PAUSE_MS = 4_000;
const PAUSE_FACTOR = 1.5;
const PAUSE_MAX_MS = 60_000;

/** After these errors, a later look-up can succeed. */
const TEMPORARY_ERRORS: readonly RequestError["code"][] = [
  "verification_failed",
  "rate_limited",
  "unavailable",
  "unreachable",
];

/** Why a look-up did not find the record. */
interface LookUpFailure {
  message: string;
  timestamp: string;
  retryAfterMs: number;
}

export interface Verification {
  /** Whether the look-ups have begun. */
  isWatching: boolean;
  /** The result of the newest look-up; null before the first one, and after one that found the record. */
  failure: LookUpFailure | null;
  /** The error that ended the look-ups; null while there is none. */
  error: unknown;
  isLookingUp: boolean;
  /** Begins the look-ups, or makes the next one at once. */
  check: () => void;
}

/** Looks for the record only while the page is visible. */
export function useVerification({ id }: CustomDomain): Verification {
  const queries = useQueryClient();
  const [isWatching, setWatching] = useState(false);
  const lookUp = useQuery({
    queryKey: ["domain-verification", id],
    queryFn: ({ signal }) => verify(queries, id, signal),
    enabled: isWatching,
    retry: false,
    gcTime: 0,
    refetchInterval: ({ state }) => (state.error ? false : getPauseMs(state)),
  });
  return {
    isWatching,
    failure: lookUp.data ?? null,
    error: lookUp.error,
    isLookingUp: lookUp.isFetching,
    check: () => (isWatching ? void lookUp.refetch() : setWatching(true)),
  };
}

interface LookUpState {
  data: LookUpFailure | null | undefined;
  dataUpdateCount: number;
}

function getPauseMs({ data, dataUpdateCount: count }: LookUpState): number | false {
  if (data === null) return false;
  const pauseMs = Math.min(FIRST_PAUSE_MS * PAUSE_FACTOR ** (count - 1), PAUSE_MAX_MS);
  return Math.max(pauseMs, data?.retryAfterMs ?? 0);
}

async function verify(
  queries: QueryClient,
  id: string,
  signal: AbortSignal,
): Promise<LookUpFailure | null> {
  try {
    const verified = await call<CustomDomain>("POST", `/domains/${id}/verify`, undefined, signal);
    // A list that is on its way would bring the old state back.
    await queries.cancelQueries(domainsQuery);
    queries.setQueryData(domainsQuery.queryKey, (list) =>
      list?.map((domain) => (domain.id === id ? verified : domain)),
    );
    notify(`${verified.domain} is verified.`);
    return null;
  } catch (error) {
    if (!(error instanceof RequestError) || !TEMPORARY_ERRORS.includes(error.code)) throw error;
    return {
      message: getUserMessage(error),
      timestamp: new Date().toISOString(),
      retryAfterMs: (error.retryAfterSeconds ?? 0) * 1000,
    };
  }
}
