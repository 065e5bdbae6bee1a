/**
 * How fast frames of WebSockets go on to workerd, which serves no other connection while it reads messages that have arrived:
 * each takes it up to 50 µs, however small it is. So the connections of one source share a rate, and their frames pass a few
 * at a time.
 */
import { RatePacer, type StreamAllowance } from "../../../sockets/rate-pacer.ts";
import { takeFromBucket, type TokenBucket } from "../../../shared/bounds/token-bucket.ts";
import { FRAME_MIN_BYTES, FRAMES_PER_SECOND, FRAMES_BURST_MS } from "../limits.ts";

const BITS_PER_MEGABIT = 1_000_000;
/** Each connection has these beside the rate of its source: the heartbeats of idle ones don't wait for those that send much. */
export const OWN_FRAMES = { burst: 4, refillMs: 1_000 };
const MBPS = (FRAMES_PER_SECOND * FRAME_MIN_BYTES * 8) / BITS_PER_MEGABIT;

interface SourcePace {
  pacer: RatePacer;
  connections: number;
}

export class FramePace {
  readonly #bySource = new Map<string, SourcePace>();

  /** @param resume called when frames may pass again after `take` returned false. */
  createAllowance(source: string, resume: () => void): FrameAllowance {
    let pace = this.#bySource.get(source);
    if (!pace) {
      pace = { pacer: new RatePacer(MBPS, FRAMES_BURST_MS), connections: 0 };
      this.#bySource.set(source, pace);
    }
    pace.connections += 1;
    return new FrameAllowance(pace.pacer, resume, () => this.#release(source, pace));
  }

  #release(source: string, pace: SourcePace): void {
    pace.connections -= 1;
    if (pace.connections > 0) return;
    pace.pacer.close();
    this.#bySource.delete(source);
  }
}

/** How many frames of one connection may pass. */
export class FrameAllowance {
  readonly #frames: StreamAllowance;
  readonly #onEnd: () => void;
  #ownFrames: TokenBucket | undefined;
  #isUsedUp = false;
  #hasEnded = false;

  constructor(pacer: RatePacer, resume: () => void, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#frames = pacer.createAllowance(() => {
      this.#isUsedUp = false;
      resume();
    });
  }

  /** Whether the next frame has to wait. */
  get isUsedUp(): boolean {
    return this.#isUsedUp;
  }

  /** A frame has passed. @returns whether the next one may pass too. */
  take(): boolean {
    const { bucket, waitMs } = takeFromBucket(this.#ownFrames, OWN_FRAMES, performance.now());
    this.#ownFrames = bucket;
    if (waitMs === 0) return true;
    this.#isUsedUp = !this.#frames.consume(FRAME_MIN_BYTES);
    return !this.#isUsedUp;
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#frames.end();
    this.#onEnd();
  }
}
