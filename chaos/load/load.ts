/** Everything that uses the service during an experiment: visitors of each kind, and writers of the API. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../test/harness/random.ts";
import type { History } from "../history.ts";
import type { Owner } from "../owner.ts";

export interface LoadTargets {
  /** Through the fault proxy: for visitors of HTTP tunnels and callers of the API. */
  visitorPort: number;
  /** Through the fault proxy: the public port of the TCP tunnel. undefined: there is none. */
  streamPort: number | undefined;
  /** The host of each HTTP tunnel by its name. */
  hosts: Map<string, string>;
  /** Whose tunnels they are. */
  owner: Owner;
  /** By which a policy is set: the id of the first HTTP tunnel. */
  policyTunnelId: string;
}

export interface LoadContext {
  targets: LoadTargets;
  history: History;
  random: Random;
  /** Aborted at the end of the load: what has begun is finished. */
  signal: AbortSignal;
  /** Unique in an experiment. */
  nextId: () => string;
}

/** How many of each kind run at the same time. */
export interface LoadSize {
  visitors: number;
  transfers: number;
  webSockets: number;
  tcpStreams: number;
  writers: number;
}

/** How long a visitor or a caller waits for an answer. Visitors of a tunnel without an agent wait ten seconds for it. */
export const ANSWER_MAX_MS = 25_000;

/** Repeats `work` until the end of the load, with a pause of up to `pauseMs` after each time. */
export async function repeat(
  { signal, random }: Pick<LoadContext, "signal" | "random">,
  pauseMs: number,
  work: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    await work();
    await sleep(random.below(pauseMs) + 1, undefined, { signal }).catch(() => undefined);
  }
}
