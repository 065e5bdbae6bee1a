/** Frames of HTTP/2 (RFC 9113 §4.1) of one end of a connection that a test plays, including those that no client would send. */
import type { Socket } from "node:net";
import { vi } from "vitest";
import { WAIT_OPTIONS } from "../timeouts.ts";

export const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
  /** Which everyone ignores (RFC 9113 §5.5). */
  unknown: 0x20,
} as const;
export const END_STREAM = 0x1;
export const ACK = 0x1;
export const END_HEADERS = 0x4;
export const ERROR = {
  none: 0,
  protocol: 1,
  internal: 2,
  refusedStream: 7,
  cancel: 8,
  enhanceYourCalm: 11,
} as const;
/** The indexed fields `:status: 200` and `:status: 400` of HPACK's static table (RFC 7541 appendix A). */
export const STATUS_200 = 0x88;
export const STATUS_400 = 0x8c;

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES = 9;
const LENGTH_PREFIX_MAX = 0x7f;

export interface Frame {
  type: number;
  flags: number;
  stream: number;
  payload: Buffer;
}

export function formatFrame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** As literals without indexing (RFC 7541 §6.2.2). */
export function formatFields(fields: Iterable<readonly [string, string]>): Buffer {
  return Buffer.concat(
    [...fields].flatMap(([name, value]) => [
      Buffer.from([0]),
      formatString(name),
      formatString(value),
    ]),
  );
}

function formatString(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length < LENGTH_PREFIX_MAX) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [LENGTH_PREFIX_MAX];
  let rest = bytes.length - LENGTH_PREFIX_MAX;
  for (; rest > LENGTH_PREFIX_MAX; rest >>= 7) length.push((rest & LENGTH_PREFIX_MAX) | 0x80);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

export interface StartOptions {
  /** Whether the settings of the other end take effect. Default: yes. */
  acknowledges?: boolean;
}

export class FrameEnd {
  readonly frames: Frame[] = [];
  isClosed = false;
  readonly socket: Socket;
  #rest = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (bytes) => this.#read(bytes));
    socket.on("close", () => (this.isClosed = true));
    socket.on("error", () => undefined);
  }

  /** Sends the preface and the settings. */
  async start({ acknowledges = true }: StartOptions = {}): Promise<void> {
    this.socket.write(PREFACE);
    this.send(TYPE.settings, 0, 0);
    await this.waitFor(({ type, flags }) => type === TYPE.settings && flags === ACK);
    if (acknowledges) this.send(TYPE.settings, ACK, 0);
  }

  send(type: number, flags: number, stream: number, payload?: Uint8Array): void {
    this.socket.write(formatFrame(type, flags, stream, payload));
  }

  /** Sends the head of a request, by default of a GET of `/` at the host `a` without a body. */
  request(
    stream: number,
    fields: Record<string, string> | (readonly [string, string])[] = {},
    flags = END_STREAM,
  ): void {
    const pseudo = { ":method": "GET", ":scheme": "https", ":authority": "a", ":path": "/" };
    const list = Array.isArray(fields) ? fields : Object.entries({ ...pseudo, ...fields });
    this.send(TYPE.headers, END_HEADERS | flags, stream, formatFields(list));
  }

  async waitFor(isWanted: (frame: Frame) => boolean): Promise<Frame> {
    await vi.waitUntil(() => this.isClosed || this.frames.some(isWanted), WAIT_OPTIONS);
    const frame = this.frames.find(isWanted);
    if (!frame) throw new Error("the connection was closed");
    return frame;
  }

  /** Resolves when everything that was sent was read. */
  async ping(): Promise<void> {
    const isAnswer = ({ type, flags }: Frame) => type === TYPE.ping && flags === ACK;
    const answers = this.frames.filter(isAnswer).length;
    this.send(TYPE.ping, 0, 0, Buffer.alloc(8));
    await this.waitFor(() => this.frames.filter(isAnswer).length > answers);
  }

  /** @returns the error code with which a stream was reset, or, for stream 0, the session was closed. */
  async waitForError(stream: number): Promise<number> {
    const frame = await this.waitFor(
      ({ type, stream: id }) =>
        (type === TYPE.goaway && stream === 0) || (type === TYPE.reset && id === stream),
    );
    return frame.payload.readUInt32BE(frame.type === TYPE.goaway ? 4 : 0);
  }

  #read(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < end) return;
      this.frames.push({
        type: this.#rest.readUInt8(3),
        flags: this.#rest.readUInt8(4),
        stream: this.#rest.readUInt32BE(5),
        payload: this.#rest.subarray(HEAD_BYTES, end),
      });
      this.#rest = this.#rest.subarray(end);
    }
  }
}
