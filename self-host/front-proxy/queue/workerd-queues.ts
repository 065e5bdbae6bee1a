/**
 * The queues to workerd: one for requests, and one for the frames of each kind of WebSocket, so that a flood of one kind does
 * not use up the room of another.
 */
import { SourceMemory } from "../../../shared/bounds/source-memory.ts";
import { QUEUED_HEADS_MAX_BYTES } from "../limits.ts";
import type { OpenWebSocket } from "../websockets/open-web-socket.ts";
import { FairQueue, type FairQueueOptions } from "./fair-queue.ts";

type Probe = FairQueueOptions["probe"];

/** Few, because each delays the next one, and enough that workerd never waits for this process. */
export const REQUESTS_IN_FLIGHT_MAX = 16;
/**
 * A frame takes workerd 50 to 200 µs, however small its message is, and other connections have their turn only after all that
 * have arrived. Those of an agent carry the traffic of many visitors, which a low number would slow down.
 */
export const FRAMES_IN_FLIGHT_MAX = { visitor: 16, program: 128 };
/**
 * After workerd has read frames of visitors, no more are sent for as long as that took, but at most this long. So others have
 * half of its time.
 */
export const FRAMES_PAUSE_MAX_MS = 10;
/** Most responses begin sooner, and need no probe. */
const REQUESTS_PROBE_DELAY_MS = 3;

export function createRequestQueue(
  probe: Probe,
  memory = new SourceMemory(QUEUED_HEADS_MAX_BYTES),
): FairQueue {
  return new FairQueue({
    inFlightMax: REQUESTS_IN_FLIGHT_MAX,
    probeFrom: Infinity,
    probeDelayMs: REQUESTS_PROBE_DELAY_MS,
    probe,
    memory,
  });
}

/** Nothing tells when workerd has read a frame. So a probe is sent early enough that a busy connection rarely waits for it. */
export function createFrameQueue(kind: OpenWebSocket["kind"], probe: Probe): FairQueue {
  const inFlightMax = FRAMES_IN_FLIGHT_MAX[kind];
  return new FairQueue({
    inFlightMax,
    probeFrom: inFlightMax / 2,
    probeDelayMs: 0,
    probe: kind === "visitor" ? withPause(probe) : probe,
    // The bytes of frames that wait stay in the connections' own buffers.
    memory: new SourceMemory(0),
  });
}

/** The pause is limited because workerd may take long for a reason other than the frames. */
function withPause(probe: Probe): Probe {
  return async () => {
    const sentAtMs = performance.now();
    await probe();
    const pauseMs = Math.min(performance.now() - sentAtMs, FRAMES_PAUSE_MAX_MS);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  };
}
