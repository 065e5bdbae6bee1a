/**
 * The wire between an agent and its tunnel (docs/protocols/agent-protocol.md): each binary WebSocket message is one
 * or more frames, each frame a header of ten bytes and its payload. Numbers are big-endian.
 *
 *     type u8 | flags u8 | stream u32 | length u32 | payload
 */
import { z } from "zod";
import { FRAME_DATA_MAX_BYTES, SHARDS_MAX } from "../limits.ts";
import { LOCAL_SERVER_MAX_CHARS } from "../local-server.ts";
import { freeBytes } from "../../shared/bytes.ts";
import { parseJson } from "../../shared/json.ts";

/** Header of a frame: type, flags, stream id, payload length. */
export const FRAME_HEADER_BYTES = 10;
/** The largest frame of any type. The platform accepts 128 KB of headers. */
export const FRAME_MAX_BYTES = 512 * 1024;

export const PROTOCOL_VERSION = 1;
/** Offered and accepted in `Sec-WebSocket-Protocol`, so that a version mismatch is detected before the first frame. */
export const SUBPROTOCOL = "underpass.v1";
/** The same between a client of `underpass connect` and the service. */
export const STREAMS_SUBPROTOCOL = "underpass-streams.v1";
/** Listed in the hello of an agent that accepts `connect` streams. */
export const TCP_CAPABILITY = "tcp";
/** Listed by both ends when the agent answers a `close` of the tunnel with the local server's last messages and its Close. */
export const CLOSE_CAPABILITY = "websocket-close";
/** Listed by a server that honors the `host` of a connect request and its gates (`schemas/tunnels/agent-gates.ts`). */
export const GATES_CAPABILITY = "gates";
/** Listed in the hello of an agent that reads `status` frames. */
export const STATUS_CAPABILITY = "status";
/** Listed in the hello of an agent that reads the id of a request. */
export const REQUEST_IDS_CAPABILITY = "request-ids";
/** Listed by a server that lets several agents serve a tunnel as a pool. */
export const POOL_CAPABILITY = "pool";
/** A client's WebSocket carries one TCP connection, on this stream. */
export const CLIENT_STREAM = 1;

/**
 * The heartbeat: text messages that the platform answers without waking the tunnel's object. Visitors' sockets share
 * this automatic response, so the text is one that no application sends by chance.
 */
export const PING = "underpass-heartbeat-ping:7d1f0c52";
export const PONG = "underpass-heartbeat-pong:7d1f0c52";

export const FRAME = {
  /** Agent's first frame. Stream 0, payload: `Hello` as JSON. */
  hello: 1,
  /** The tunnel's response to it. Stream 0, payload: `Welcome` as JSON. */
  welcome: 2,
  /** A visitor's request opens a stream. Payload: JSON `[method, target, name, value, …]`, and its id when flagged `id`. */
  request: 3,
  /** The local server's response. Payload: JSON `[status, name, value, …]`. */
  response: 4,
  /** Body bytes, either way. */
  data: 5,
  /** Aborts the stream, either way. Payload: code u16, then UTF-8 text. */
  reset: 6,
  /** The sender of this frame has consumed `u32` bytes of the stream. */
  credit: 7,
  /** One WebSocket message, or a part of one when flagged `more`. */
  text: 8,
  binary: 9,
  /** A WebSocket's Close. Payload: code u16 (1005: none, 1006: the connection was lost), then the UTF-8 reason. */
  close: 10,
  /** The sender finishes the streams in flight and then closes. Stream 0, payload: UTF-8 reason. */
  goingAway: 11,
  /** A client of `underpass connect` opens a TCP stream. Payload: `StreamPeer` as JSON. */
  connect: 12,
  /** What an agent shows about its tunnel has changed. Stream 0, payload: `StatusUpdate` as JSON. */
  status: 13,
  /** An agent of a pool: whether its local server accepts connections. Stream 0, payload: `AgentHealth` as JSON. */
  health: 14,
} as const;
export type FrameType = (typeof FRAME)[keyof typeof FRAME];

export const FLAG = {
  /** On request, response and data: the sender's body ends with this frame. */
  end: 1,
  /** On request: the visitor asks for a WebSocket. */
  socket: 2,
  /** On text and binary: the message continues in the stream's next frame of this type. */
  more: 4,
  /** On request: the payload ends with the request's id. Only to agents with `REQUEST_IDS_CAPABILITY`. */
  id: 8,
} as const;

/** Why a stream was reset. */
export const RESET = {
  /** The other end has canceled it: the visitor left. */
  canceled: 1,
  /** Nothing accepted the connection to the local server. */
  originUnreachable: 2,
  /** The local server took too long. */
  originTimeout: 3,
  /** The local server closed the connection early, or did not speak HTTP. */
  originFailed: 4,
  /** Never forwarded; safe to send again elsewhere. */
  refused: 5,
  /** More bytes than the window, or a frame at the wrong time. */
  protocolError: 6,
  /** A WebSocket message or a response's head above the limit. */
  tooLarge: 7,
  /** No agent serves the tunnel, or it disconnected. Sent only to clients of `underpass connect`. */
  agentOffline: 8,
} as const;
export type ResetCode = (typeof RESET)[keyof typeof RESET];

export const Hello = z.object({
  protocol: z.int(),
  /** Product and version, for logs and the list of connections. */
  agent: z.string().max(200),
  capabilities: z.array(z.string().max(50)).max(50),
  streamWindow: z.int().min(1),
  connectionWindow: z.int().min(1),
  /** The local server, for people: `http://localhost:3000`, `unix:/run/app.sock`, the path of a directory. */
  local: z.string().max(LOCAL_SERVER_MAX_CHARS).optional(),
  /** The agent serves the tunnel together with others that ask for the same. Absent: alone. */
  pool: z
    .object({
      /** Identifies the agent over all of its connections: a newer one replaces its older one only. */
      instance: z.uuid(),
      /** Whether its local server accepts connections. */
      healthy: z.boolean(),
    })
    .optional(),
});
export type Hello = z.infer<typeof Hello>;

/** Sent by an agent of a pool when it has changed since its hello. */
export const AgentHealth = z.object({ healthy: z.boolean() });
export type AgentHealth = z.infer<typeof AgentHealth>;

export const Welcome = z.object({
  protocol: z.int(),
  server: z.string(),
  capabilities: z.array(z.string()),
  tunnelId: z.uuid(),
  agentId: z.uuid(),
  /** Requested again on reconnect. The subdomain is the name with its project's suffix. */
  name: z.string(),
  subdomain: z.string(),
  url: z.url({ protocol: /^(?:https?|tcp)$/ }),
  streamWindow: z.int().min(1),
  connectionWindow: z.int().min(1),
  heartbeatIntervalMs: z.int().min(1),
  heartbeatTimeoutMs: z.int().min(1),
  /** What visitors must bring: some of `GATE_NAMES`, or names that a later version has added. Absent: unknown. */
  gates: z.array(z.string()).optional(),
  /** Whether visitors get the maintenance page instead of the local server's responses. Absent: no, or unknown. */
  maintenance: z.boolean().optional(),
  /** How many objects the tunnel's visitors are spread over: the agent connects to each of them. Absent: one. */
  shards: z.int().min(1).max(SHARDS_MAX).optional(),
  /** When the tunnel expires, in RFC 3339. Absent: never, or unknown. */
  expiresAt: z.string().optional(),
  /** Why that is earlier than the `ttl` of the connect request: a `TtlLimit`, or a name that a later version has added. */
  ttlLimit: z.string().optional(),
});
export type Welcome = z.infer<typeof Welcome>;

/**
 * The gates that an agent shows: each of them asks visitors for something, or may. `policy` is a traffic policy with any
 * actions; `token` is named besides it when one of them checks tokens.
 */
export const GATE_NAMES = ["password", "sign_in", "token", "addresses", "policy"] as const;
export type GateName = (typeof GATE_NAMES)[number];

/** The payload of `status`: what an agent shows about its tunnel, as far as it has changed. */
export const StatusUpdate = z.object({
  /** These two are as in the welcome, when one of them has changed. */
  gates: Welcome.shape.gates,
  maintenance: Welcome.shape.maintenance,
  /** How many visits were refused since the last such number, by the gates, the rate limit or maintenance. */
  refused: z.int().min(0).optional(),
  /** As in the welcome, when it has changed. */
  shards: Welcome.shape.shards,
  /** To the agents of a pool: how many serve the tunnel now. */
  agents: z.int().min(1).optional(),
  /** To an agent of a pool that goes away: no request follows this frame while another agent serves. */
  drained: z.boolean().optional(),
});
export type StatusUpdate = z.infer<typeof StatusUpdate>;

/** The part of a welcome that every version has: another version may have changed the rest. */
export const WelcomeVersion = z.object({ protocol: z.int() });

/** Where a TCP connection comes from. */
export const StreamPeer = z.object({
  address: z.string(),
  /** 0 where the platform does not provide it. */
  port: z.int().min(0).max(65_535),
});
export type StreamPeer = z.infer<typeof StreamPeer>;

/** The response to the hello of a client of `underpass connect`. */
export const ClientWelcome = z.object({
  protocol: z.int(),
  server: z.string(),
  tunnelId: z.uuid(),
  /** The port of the local server behind the agent: a client listens on the same port by default. */
  localPort: z.int().min(1).max(65_535).optional(),
  /** How much the client may send beyond the credit it got: less when a tunnel has many clients. */
  streamWindow: z.int().min(1),
  heartbeatIntervalMs: z.int().min(1),
  heartbeatTimeoutMs: z.int().min(1),
});
export type ClientWelcome = z.infer<typeof ClientWelcome>;

export interface Frame {
  type: number;
  flags: number;
  stream: number;
  /** A view into the message: copy it to use it after the current event. */
  payload: Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** Throws for invalid UTF-8, instead of replacing it. */
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const WRITER_START_BYTES = 4096;
const WRITER_SPARES_MAX = 4;
const WRITER_LARGE_BUFFER_BYTES = 32 * 1024;

/**
 * Collects the frames of one turn into one message. Buffers are reused: the caller of `take` recycles the message when it
 * is sent, so that a long transfer creates no garbage.
 */
export class FrameWriter {
  #bytes = new Uint8Array(WRITER_START_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;
  #spares: Uint8Array<ArrayBuffer>[] = [];
  /** Where the last frame begins if `writeData` may add to it. */
  #lastDataAt: number | undefined;

  get length(): number {
    return this.#length;
  }

  take(): Uint8Array<ArrayBuffer> {
    const message = this.#bytes.subarray(0, this.#length);
    this.#bytes = this.#spares.pop() ?? new Uint8Array(WRITER_START_BYTES);
    this.#view = new DataView(this.#bytes.buffer);
    this.#length = 0;
    this.#lastDataAt = undefined;
    return message;
  }

  /** The message is sent: its bytes may be overwritten. */
  recycle(message: Uint8Array<ArrayBuffer>): void {
    if (this.#spares.length < WRITER_SPARES_MAX) this.#spares.push(new Uint8Array(message.buffer));
  }

  /** Frees the buffers that large heads and bodies needed. Frames that are not taken yet stay. */
  freeLargeBuffers(): void {
    if (!isLargeBuffer(this.#bytes) && !this.#spares.some(isLargeBuffer)) return;
    const large = this.#spares.filter(isLargeBuffer);
    this.#spares = this.#spares.filter((spare) => !isLargeBuffer(spare));
    if (this.#length === 0 && isLargeBuffer(this.#bytes)) {
      large.push(this.#bytes);
      this.#bytes = new Uint8Array(WRITER_START_BYTES);
      this.#view = new DataView(this.#bytes.buffer);
    }
    for (const buffer of large) freeBytes(buffer);
  }

  writeBytes(type: FrameType, flags: number, stream: number, payload: Uint8Array): void {
    this.#reserve(FRAME_HEADER_BYTES + payload.byteLength);
    this.#writeHeader(type, flags, stream, payload.byteLength);
    this.#bytes.set(payload, this.#length);
    this.#length += payload.byteLength;
  }

  /**
   * A part of a body or of a TCP stream. Parts that follow one another become one frame: to read a frame costs more than its
   * bytes, and a local server may write one byte at a time.
   */
  writeData(stream: number, part: Uint8Array): void {
    const at = this.#lastDataAt ?? this.#length;
    const start = at + FRAME_HEADER_BYTES;
    const bytes = this.#length - start + part.byteLength;
    const isSameStream = at < this.#length && this.#view.getUint32(at + 2) === stream;
    if (!isSameStream || bytes > FRAME_DATA_MAX_BYTES) {
      const newAt = this.#length;
      this.writeBytes(FRAME.data, 0, stream, part);
      this.#lastDataAt = newAt;
      return;
    }
    this.#reserve(part.byteLength);
    this.#bytes.set(part, this.#length);
    this.#length += part.byteLength;
    this.#view.setUint32(at + 6, bytes);
  }

  writeText(type: FrameType, flags: number, stream: number, text: string): void {
    this.#reserve(FRAME_HEADER_BYTES + text.length * 3);
    const start = this.#length + FRAME_HEADER_BYTES;
    const { written } = encoder.encodeInto(text, this.#bytes.subarray(start));
    this.#writeHeader(type, flags, stream, written);
    this.#length += written;
  }

  writeJson(type: FrameType, flags: number, stream: number, value: unknown): void {
    this.writeText(type, flags, stream, JSON.stringify(value));
  }

  writeCredit(stream: number, bytes: number): void {
    this.#reserve(FRAME_HEADER_BYTES + 4);
    this.#writeHeader(FRAME.credit, 0, stream, 4);
    this.#view.setUint32(this.#length, bytes);
    this.#length += 4;
  }

  /** A frame whose payload is a code and a text: reset and close. */
  writeCodeAndText(
    type: typeof FRAME.reset | typeof FRAME.close,
    stream: number,
    code: number,
    text: string,
  ) {
    this.#reserve(FRAME_HEADER_BYTES + 2 + text.length * 3);
    const start = this.#length + FRAME_HEADER_BYTES;
    const { written } = encoder.encodeInto(text, this.#bytes.subarray(start + 2));
    this.#writeHeader(type, 0, stream, written + 2);
    this.#view.setUint16(start, code);
    this.#length += written + 2;
  }

  #writeHeader(type: FrameType, flags: number, stream: number, length: number): void {
    const at = this.#length;
    this.#lastDataAt = undefined;
    this.#view.setUint8(at, type);
    this.#view.setUint8(at + 1, flags);
    this.#view.setUint32(at + 2, stream);
    this.#view.setUint32(at + 6, length);
    this.#length = at + FRAME_HEADER_BYTES;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.byteLength) return;
    const grown = new Uint8Array(Math.max(needed, this.#bytes.byteLength * 2));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

function isLargeBuffer({ byteLength }: Uint8Array): boolean {
  return byteLength > WRITER_LARGE_BUFFER_BYTES;
}

/** @returns null when the payload is not valid UTF-8. */
export function decodeStrictText(payload: Uint8Array): string | null {
  try {
    return strictDecoder.decode(payload);
  } catch {
    return null;
  }
}

/** @returns undefined when the payload is not JSON. */
export function parseJsonPayload(payload: Uint8Array): unknown {
  return parseJson(decoder.decode(payload));
}

/** @returns null when the payload is not a code followed by text. */
export function parseCodeAndText(payload: Uint8Array): { code: number; text: string } | null {
  if (payload.byteLength < 2) return null;
  const code = (payload[0]! << 8) | payload[1]!;
  return { code, text: decoder.decode(payload.subarray(2)) };
}

/** @returns null when the payload is not a u32. */
export function parseCredit(payload: Uint8Array): number | null {
  if (payload.byteLength !== 4) return null;
  return new DataView(payload.buffer, payload.byteOffset, 4).getUint32(0);
}

/**
 * The head of a request: method and target, followed by header names and values in turn, which keeps repeated names
 * apart and in order.
 * @param flags of the frame. @returns null when the payload is not such an array.
 */
export function parseRequestHead(
  payload: Uint8Array,
  flags: number,
): { head: string[]; requestId: string | undefined } | null {
  const head = parseJsonPayload(payload);
  if (!Array.isArray(head) || !head.every((part) => typeof part === "string")) return null;
  const requestId = flags & FLAG.id ? head.pop() : undefined;
  return head.length < 2 || head.length % 2 !== 0 ? null : { head, requestId };
}
