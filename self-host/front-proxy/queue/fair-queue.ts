/**
 * The order in which requests, or frames of WebSockets, are forwarded to workerd. workerd has one thread, and takes them in the
 * order of their arrival. So only a few of them are in flight to it at a time. The others wait here, and their sources take
 * turns: a source that sends thousands of them delays one of another source by those few only.
 *
 * A request is in flight until its response begins. That can take long because the local server is slow, and does not
 * occupy workerd. A frame has no response at all. So when requests or frames have to wait, a probe is sent after those in
 * flight: once it is answered, workerd has read all that was sent before it, which no longer counts.
 */
import type { MemoryReservation, SourceMemory } from "../../../shared/bounds/source-memory.ts";

export interface FairQueueOptions {
  /** How many may be in flight. */
  inFlightMax: number;
  /** A probe is sent once this many were sent after the last one, even if none wait. */
  probeFrom: number;
  /** How long a probe that is due is put off, because its reason may end sooner. */
  probeDelayMs: number;
  /** Resolves when workerd has read all that was sent to it before the call, or is not running. */
  probe: () => Promise<void>;
  /** Holds the bytes of those that wait. */
  memory: SourceMemory;
}

interface Item {
  /** The size of what has to be held while it waits. */
  bytes: number;
  /** The group of the visitor's address. Called only if the item has to wait. */
  findSource: () => string;
  /** Sends it to workerd. Called at most once. */
  send: () => void;
}

/** The items that were sent between two probes. */
interface Batch {
  inFlight: number;
}

/** A request or frame that waits or is in flight. */
export interface QueuedItem {
  /** Its response begins, or it is given up. Idempotent. */
  end(): void;
}

interface Entry extends QueuedItem {
  send: () => void;
  /** While it waits. */
  place?: Place | undefined;
  /** While it is in flight. */
  batch?: Batch | undefined;
}

interface Place {
  source: string;
  reservation: MemoryReservation;
}

export class FairQueue {
  readonly #options: FairQueueOptions;
  /** By source, in the order of their turns. No set is empty. */
  readonly #waiting = new Map<string, Set<Entry>>();
  #waitingCount = 0;
  /** Sent since the last probe. */
  #batch: Batch = { inFlight: 0 };
  /** Sent before the probe that is not answered yet. */
  #probedBatch: Batch = { inFlight: 0 };
  #isProbePlanned = false;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  get waitingCount(): number {
    return this.#waitingCount;
  }

  /**
   * Sends it now, or when it is its turn.
   * @returns undefined if those of its source that wait are too large together.
   */
  add({ bytes, findSource, send }: Item): QueuedItem | undefined {
    const entry: Entry = { send, end: () => this.#end(entry) };
    if (this.#hasRoom && this.#waitingCount === 0) {
      this.#send(entry);
      return entry;
    }
    const source = findSource();
    const reservation = this.#options.memory.createReservation(source);
    if (!reservation.resize(bytes)) return undefined;
    entry.place = { source, reservation };
    const entries = this.#waiting.get(source);
    if (entries) entries.add(entry);
    else this.#waiting.set(source, new Set([entry]));
    this.#waitingCount += 1;
    this.#planProbe();
    return entry;
  }

  get #hasRoom(): boolean {
    return this.#batch.inFlight + this.#probedBatch.inFlight < this.#options.inFlightMax;
  }

  get #isProbeDue(): boolean {
    return this.#waitingCount > 0 || this.#batch.inFlight >= this.#options.probeFrom;
  }

  #send(entry: Entry): void {
    entry.batch = this.#batch;
    entry.batch.inFlight += 1;
    if (this.#isProbeDue) this.#planProbe();
    entry.send();
  }

  #end(entry: Entry): void {
    if (entry.place) this.#leave(entry, entry.place);
    if (!entry.batch) return;
    entry.batch.inFlight -= 1;
    entry.batch = undefined;
    this.#sendWaiting();
  }

  #leave(entry: Entry, { source, reservation }: Place): void {
    const entries = this.#waiting.get(source)!;
    entries.delete(entry);
    if (entries.size === 0) this.#waiting.delete(source);
    this.#waitingCount -= 1;
    reservation.clear();
    entry.place = undefined;
  }

  #sendWaiting(): void {
    for (const [source, entries] of this.#waiting) {
      if (!this.#hasRoom) break;
      const [entry] = entries;
      this.#leave(entry!, entry!.place!);
      // The next one of the source comes after those of all others.
      if (this.#waiting.delete(source)) this.#waiting.set(source, entries);
      this.#send(entry!);
    }
    if (this.#isProbeDue) this.#planProbe();
  }

  #planProbe(): void {
    if (this.#isProbePlanned) return;
    this.#isProbePlanned = true;
    const probe = (): void => void this.#probe();
    const { probeDelayMs } = this.#options;
    // Not at once: the bytes that this turn of the event loop sends must be ahead of it.
    if (probeDelayMs === 0) setImmediate(probe);
    else setTimeout(probe, probeDelayMs);
  }

  async #probe(): Promise<void> {
    if (this.#isProbeDue) {
      this.#probedBatch = this.#batch;
      this.#batch = { inFlight: 0 };
      await this.#options.probe();
      this.#probedBatch = { inFlight: 0 };
    }
    this.#isProbePlanned = false;
    this.#sendWaiting();
  }
}
