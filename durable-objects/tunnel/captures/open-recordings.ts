/** The recordings of exchanges that have not ended. */
import type { LongLivedRow } from "./record.ts";
import type { Recording } from "./recording.ts";

interface OpenRecordingsDeps {
  readRow: (id: string) => LongLivedRow | undefined;
  resume: (row: LongLivedRow) => Recording;
}

export class OpenRecordings {
  readonly #deps: OpenRecordingsDeps;
  /** Those that may end soon, oldest first. */
  readonly #recent = new Map<string, Recording>();
  /** Those of exchanges that are open for long: each has a row of its own. */
  readonly #longLived = new Map<string, Recording>();
  /** The ids of WebSockets' recordings that have only their rows since the object hibernated. */
  readonly #hibernated = new Set<string>();

  constructor(deps: OpenRecordingsDeps) {
    this.#deps = deps;
  }

  get hasRecent(): boolean {
    return this.#recent.size > 0;
  }

  add(recording: Recording): void {
    this.#recent.set(recording.id, recording);
  }

  /**
   * For an object that wakes up: the WebSocket's recording continues. It is read from its row when it is needed, because
   * thousands of WebSockets wake up together, and most of them stay idle.
   */
  addHibernated(id: string): void {
    this.#hibernated.add(id);
  }

  /** @returns false when it has been promoted before. */
  promote(recording: Recording): boolean {
    if (!this.#recent.delete(recording.id)) return false;
    recording.isLongLived = true;
    this.#longLived.set(recording.id, recording);
    return true;
  }

  /** Those that may end soon and began at `untilMs` or earlier. Each may be promoted while they are iterated. */
  *listRecent(untilMs: number): Iterable<Recording> {
    for (const recording of this.#recent.values()) {
      if (recording.atMs > untilMs) break;
      yield recording;
    }
  }

  /** Whether the row is that of a recording that has not changed since the object hibernated. */
  isHibernated(id: string): boolean {
    return this.#hibernated.has(id);
  }

  /** @param readRow where the row of one that hibernated is read. */
  findLongLived(id: string, readRow = this.#deps.readRow): Recording | undefined {
    if (this.#hibernated.delete(id)) {
      const row = readRow(id);
      if (row?.record.state === "open") this.#longLived.set(id, this.#deps.resume(row));
    }
    return this.#longLived.get(id);
  }

  remove({ id }: Recording): void {
    this.#recent.delete(id);
    this.#longLived.delete(id);
  }
}
