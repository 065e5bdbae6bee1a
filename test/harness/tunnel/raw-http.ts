/**
 * HTTP/1.1 as raw bytes over a socket, without normalization: the tests are about what a client library would correct.
 */
import { connect, type Socket } from "node:net";
import { WAIT_MAX_MS } from "../timeouts.ts";

export interface Message {
  /** `GET /x HTTP/1.1` or `HTTP/1.1 200 OK`. */
  startLine: string;
  /** Names and values as they were received, in their order. */
  headers: [name: string, value: string][];
  body: Buffer;
  /** Statuses of the interim responses (1xx) before it. */
  interim: number[];
}

export interface Answer extends Message {
  status: number;
}

/** How the length of a message's body is determined (RFC 9112 §6.3). */
type Framing =
  | { kind: "none" }
  | { kind: "length"; length: number }
  | { kind: "chunked" | "close" };

/** Reads messages from a connection, one after the other. */
export class MessageReader {
  readonly #socket: Socket;
  /** Received and unread bytes, from `#at` to `#end`. Grows by doubling: bodies are megabytes. */
  #bytes = Buffer.alloc(64 * 1024);
  #at = 0;
  #end = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    const wake = (): void => this.#wake?.();
    socket.on("data", (chunk: Buffer) => {
      this.#append(chunk);
      wake();
    });
    socket.on("end", () => ((this.#ended = true), wake()));
    socket.on("close", () => ((this.#ended = true), wake()));
    socket.on("error", (error) => ((this.#error = error), wake()));
  }

  /** The start line and the header lines; null at the end of the connection. */
  async head(): Promise<Omit<Message, "body" | "interim"> | null> {
    const end = await this.#waitFor(() => this.#buffer.indexOf("\r\n\r\n"));
    if (end < 0) return null;
    const [startLine = "", ...lines] = this.#take(end + 4)
      .subarray(0, end)
      .toString("latin1")
      .split("\r\n");
    const headers = lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    });
    return { startLine, headers };
  }

  /** The next bytes of a body of this framing; null at its end. */
  async chunk(framing: Framing & { left?: number }): Promise<Buffer | null> {
    switch (framing.kind) {
      case "none":
        return null;
      case "length": {
        framing.left ??= framing.length;
        if (framing.left === 0) return null;
        if ((await this.#waitFor(() => (this.#buffer.length > 0 ? 0 : -1))) < 0)
          throw this.#endedEarly();
        const chunk = this.#take(Math.min(framing.left, this.#buffer.length));
        framing.left -= chunk.length;
        return chunk;
      }
      case "chunked": {
        const line = await this.#line();
        const size = Number.parseInt(line, 16);
        if (!Number.isInteger(size)) throw new Error(`invalid chunk size: ${line}`);
        if (size > 0) {
          const chunk = await this.#exactly(size);
          await this.#line();
          return chunk;
        }
        while ((await this.#line()) !== "");
        return null;
      }
      case "close":
        if ((await this.#waitFor(() => (this.#buffer.length > 0 ? 0 : -1))) < 0) return null;
        return this.#take(this.#buffer.length);
    }
  }

  async body(framing: Framing): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for (let chunk = await this.chunk(framing); chunk; chunk = await this.chunk(framing))
      chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  /** @throws when the connection ended before the response was complete. */
  async answer(method: string): Promise<Answer> {
    const interim: number[] = [];
    for (;;) {
      const head = await this.head();
      if (!head) throw this.#endedEarly();
      const status = Number(head.startLine.split(" ")[1]);
      if (status < 200 && status !== 101) {
        interim.push(status);
        continue;
      }
      const body = await this.body(getFraming(head.headers, method, status));
      return { ...head, status, body, interim };
    }
  }

  #endedEarly(): Error {
    return this.#error ?? new Error("the connection ended early");
  }

  async #line(): Promise<string> {
    const end = await this.#waitFor(() => this.#buffer.indexOf("\r\n"));
    if (end < 0) throw this.#endedEarly();
    return this.#take(end + 2)
      .subarray(0, end)
      .toString("latin1");
  }

  async #exactly(length: number): Promise<Buffer> {
    if ((await this.#waitFor(() => (this.#buffer.length >= length ? 0 : -1))) < 0)
      throw this.#endedEarly();
    return this.#take(length);
  }

  get #buffer(): Buffer {
    return this.#bytes.subarray(this.#at, this.#end);
  }

  #append(chunk: Buffer): void {
    const waiting = this.#buffer;
    if (this.#end + chunk.length > this.#bytes.length) {
      const size = 2 * (waiting.length + chunk.length);
      if (size > this.#bytes.length) this.#bytes = Buffer.alloc(size);
      waiting.copy(this.#bytes);
      this.#at = 0;
      this.#end = waiting.length;
    }
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  #take(length: number): Buffer {
    const bytes = Buffer.from(this.#buffer.subarray(0, length));
    this.#at += length;
    return bytes;
  }

  /** Waits until `find` returns an index. @returns the index, or -1 when the connection ended first. */
  async #waitFor(find: () => number): Promise<number> {
    for (;;) {
      const at = find();
      if (at >= 0 || this.#ended || this.#error) return at;
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => {
          this.#socket.destroy();
          reject(new Error(`received nothing for ${WAIT_MAX_MS} ms`));
        }, WAIT_MAX_MS);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}

export function getFraming(headers: [string, string][], method?: string, status?: number): Framing {
  if (method === "HEAD" || status === 204 || status === 304 || status === 101)
    return { kind: "none" };
  if (/chunked/i.test(findHeader(headers, "transfer-encoding") ?? "")) return { kind: "chunked" };
  const length = findHeader(headers, "content-length");
  if (length !== undefined) return { kind: "length", length: Number(length) };
  return { kind: status === undefined ? "none" : "close" };
}

export function findHeader(headers: [string, string][], name: string): string | undefined {
  return headers.find(([known]) => known.toLowerCase() === name)?.[1];
}

/** Opens a connection. @param localAddress the visitor's: Linux has as many loopback addresses as a test needs. */
export async function dial(
  port: number,
  { host = "127.0.0.1", localAddress }: { host?: string; localAddress?: string } = {},
): Promise<Socket> {
  const socket = connect({ port, host, noDelay: true, ...(localAddress && { localAddress }) });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return socket;
}

/** Sends the bytes unchanged and reads one response. */
export async function exchange(port: number, request: Buffer | string): Promise<Answer> {
  const socket = await dial(port);
  const reader = new MessageReader(socket);
  const bytes = typeof request === "string" ? Buffer.from(request, "latin1") : request;
  socket.write(bytes);
  try {
    return await reader.answer(bytes.subarray(0, bytes.indexOf(" ")).toString());
  } finally {
    socket.destroy();
  }
}
