/** Replays a request of the screen: the service sends what it captured to this agent again. */
import { z } from "zod";
import { RejectionError } from "../tunnel-connection.ts";
import { RetryableError, type ServiceApi } from "../service-api.ts";
import type { RequestEntry } from "./request-list.ts";

const Captures = z.array(
  z.object({
    id: z.uuid(),
    timestamp: z.string(),
    path: z.string(),
    status: z.number().nullable(),
  }),
);
const Replay = z.object({ comparison: z.object({ same: z.boolean() }) });

/** What the service allows is decided there; these are the reasons that a user can do something about. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
  unauthorized: "This agent's token may not replay requests; ask a member of the organization.",
  forbidden: "This agent's token is restricted, and may not replay requests.",
  replay_disabled:
    "Replays are off: set ALLOW_REPLAY on the server, and allowReplay of the tunnel.",
};

/**
 * @returns whether the response is the same as the captured one.
 * @throws Error with a message for the user.
 */
export async function replayRequest(
  api: ServiceApi,
  tunnelId: string,
  entry: RequestEntry,
): Promise<{ isSame: boolean }> {
  const signal = new AbortController().signal;
  try {
    const id = await findCapture(api, tunnelId, entry, signal);
    if (id === null) throw new Error("The service has not captured this request.");
    const { comparison } = await api.call(Replay, "POST", `/inspector/${id}/replay`, {
      signal,
      body: {},
    });
    return { isSame: comparison.same };
  } catch (error) {
    if (error instanceof RetryableError) throw new Error(`Not replayed: ${error.message}`);
    if (!(error instanceof RejectionError)) throw error;
    throw new Error(EXPLANATIONS[error.reason] ?? `Not replayed: ${error.message}`);
  }
}

/** The captured request with this method, path and status that was received closest in time. */
async function findCapture(
  api: ServiceApi,
  tunnelId: string,
  { report, atMs }: RequestEntry,
  signal: AbortSignal,
): Promise<string | null> {
  const [path = ""] = report.path.split("?");
  const query = new URLSearchParams({ tunnel_id: tunnelId, method: report.method, path });
  const captures = await api.call(Captures, "GET", `/inspector?${query.toString()}`, { signal });
  const receivedAtMs = report.kind === "request" ? atMs - report.durationMs : atMs;
  const distance = ({ timestamp }: { timestamp: string }): number =>
    Math.abs(Date.parse(timestamp) - receivedAtMs);
  const [closest] = captures
    .filter((capture) => capture.path === path && capture.status === report.status)
    .toSorted((a, b) => distance(a) - distance(b));
  return closest?.id ?? null;
}
