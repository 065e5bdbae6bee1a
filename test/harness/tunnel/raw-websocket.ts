/** A visitor's WebSocket as raw frames (RFC 6455 §5.2): the tests are about what a client library would not send. */
import type { Socket } from "node:net";
import { WAIT_MAX_MS } from "../timeouts.ts";
import { dial } from "./raw-http.ts";

export const OPCODE = {
  continuation: 0,
  text: 1,
  binary: 2,
  close: 8,
  ping: 9,
  pong: 10,
} as const;

interface RawFrame {
  opcode: number;
  payload: Buffer;
  /** The last frame of its message. */
  fin: boolean;
}

export interface FrameToSend {
  opcode: number;
  payload?: Buffer | string;
  fin?: boolean;
  /** The three reserved bits. */
  rsv?: number;
}

const MASK = Buffer.from([0x12, 0x34, 0x56, 0x78]);

/** A frame of a visitor. */
export function buildFrame({ opcode, payload = "", fin = true, rsv = 0 }: FrameToSend): Buffer {
  const bytes = Buffer.from(payload);
  const first = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  let head: Buffer;
  if (bytes.length < 126) head = Buffer.from([first, 0x80 | bytes.length]);
  else if (bytes.length < 65_536) {
    head = Buffer.from([first, 0x80 | 126, 0, 0]);
    head.writeUInt16BE(bytes.length, 2);
  } else {
    head = Buffer.from([first, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.writeBigUInt64BE(BigInt(bytes.length), 2);
  }
  const masked = Buffer.from(bytes);
  for (let i = 0; i < masked.length; i += 1) masked[i]! ^= MASK[i % 4]!;
  return Buffer.concat([head, MASK, masked]);
}

export function buildClose(code: number, reason: Buffer | string = ""): FrameToSend {
  const payload = Buffer.concat([Buffer.alloc(2), Buffer.from(reason)]);
  payload.writeUInt16BE(code);
  return { opcode: OPCODE.close, payload };
}

interface Handshake {
  port: number;
  host: string;
  path?: string;
  /** Additional header lines, each with its line break. */
  headers?: string;
  /** The visitor's address. */
  from?: string;
}

export class RawWebSocket {
  /** The head of the response. */
  readonly head: string;
  readonly socket: Socket;
  #bytes: Buffer;
  #hasEnded = false;
  #wake: (() => void) | undefined;

  private constructor(head: string, socket: Socket, rest: Buffer) {
    this.head = head;
    this.socket = socket;
    this.#bytes = rest;
    socket.on("data", (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      this.#wake?.();
    });
    const end = () => {
      this.#hasEnded = true;
      this.#wake?.();
    };
    socket.on("end", end).on("close", end).on("error", end);
  }

  /** Resolves with the head of the response, whatever its status. */
  static async open(handshake: Handshake): Promise<RawWebSocket> {
    const { port, host, path = "/", headers = "", from } = handshake;
    const socket = await dial(port, { ...(from && { localAddress: from }) });
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n${headers}\r\n`,
    );
    return new Promise((resolve, reject) => {
      let received = Buffer.alloc(0);
      const fail = () => reject(new Error("the connection ended before the response"));
      const receive = (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        const end = received.indexOf("\r\n\r\n");
        if (end < 0) return;
        socket.off("data", receive).off("close", fail);
        const head = received.subarray(0, end).toString("latin1");
        resolve(new RawWebSocket(head, socket, received.subarray(end + 4)));
      };
      socket.on("data", receive).on("close", fail);
    });
  }

  get status(): number {
    return Number(this.head.split(" ")[1]);
  }

  send(...frames: FrameToSend[]): void {
    this.socket.write(Buffer.concat(frames.map(buildFrame)));
  }

  /** @returns null at the end of the connection. */
  async next(): Promise<RawFrame | null> {
    for (;;) {
      const frame = this.#take();
      if (frame || this.#hasEnded) return frame;
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`received no frame for ${WAIT_MAX_MS} ms`)),
          WAIT_MAX_MS,
        );
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  #take(): RawFrame | null {
    const bytes = this.#bytes;
    if (bytes.length < 2) return null;
    const short = bytes[1]! & 0x7f;
    const headBytes = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (bytes.length < headBytes) return null;
    let length = short;
    if (short === 126) length = bytes.readUInt16BE(2);
    else if (short === 127) length = Number(bytes.readBigUInt64BE(2));
    if (bytes.length < headBytes + length) return null;
    this.#bytes = bytes.subarray(headBytes + length);
    const payload = Buffer.from(bytes.subarray(headBytes, headBytes + length));
    return { opcode: bytes[0]! & 0x0f, fin: (bytes[0]! & 0x80) !== 0, payload };
  }
}
