/**
 * The small frames of a request's body that arrive together go on as one chunk. Node.js reads thousands of frames of one byte at
 * once, and each would pass through several streams by itself, during which this process serves no other connection.
 */

/** A frame with less data than this is small. */
const SMALL_FRAME_BYTES = 64;

export class SmallFrames {
  readonly #join: (chunk: Buffer) => void;
  #waiting: Buffer[] = [];

  /** @param join called with the data of the frames. */
  constructor(join: (chunk: Buffer) => void) {
    this.#join = join;
  }

  /** Keeps the frame until all that has arrived is read. @returns false if it is not small. */
  add(frame: Buffer): boolean {
    if (frame.length >= SMALL_FRAME_BYTES) return false;
    if (this.#waiting.length === 0) setImmediate(() => this.flush());
    this.#waiting.push(frame);
    return true;
  }

  /** Joins the frames that wait, because something else follows them. */
  flush(): void {
    const frames = this.#waiting;
    const [first] = frames;
    if (!first) return;
    this.#waiting = [];
    this.#join(frames.length === 1 ? first : Buffer.concat(frames));
  }
}
