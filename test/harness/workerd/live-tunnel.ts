/**
 * A Tunnel object. The test plays its agent, frame by frame, and sends visitors' requests directly to the object.
 * For tests inside workerd.
 */
import { env } from "cloudflare:workers";
import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { vi } from "vitest";
import type { RateLimiter } from "../../../durable-objects/rate-limiter.ts";
import type { Directory } from "../../../durable-objects/directory.ts";
import type { Organization } from "../../../durable-objects/organization.ts";
import type { Tunnel } from "../../../durable-objects/tunnel.ts";
import {
  ADMISSION_HEADER,
  AGENT_CONNECT_URL,
  type AgentAdmission,
} from "../../../durable-objects/tunnel/admission.ts";
import { toObjectName } from "../../../durable-objects/tunnel/shards/object-name.ts";
import { answerClose, parseClose, type SocketClose } from "../../../durable-objects/websockets.ts";
import {
  parseCodeAndText,
  FLAG,
  FRAME,
  FrameWriter,
  parseJsonPayload,
  PROTOCOL_VERSION,
  parseRequestHead,
  SUBPROTOCOL,
  Welcome,
  type Frame,
  type FrameType,
  type Hello,
} from "../../../protocol/wire/frames.ts";
import { readFrames } from "../../../protocol/wire/read-frames.ts";
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import { WAIT_OPTIONS } from "../timeouts.ts";

export const bindings = env as unknown as {
  TUNNEL: DurableObjectNamespace<Tunnel>;
  DIRECTORY: DurableObjectNamespace<Directory>;
  ORGANIZATION: DurableObjectNamespace<Organization>;
  RATE_LIMITER: DurableObjectNamespace<RateLimiter>;
};

export const HELLO: Hello = {
  protocol: PROTOCOL_VERSION,
  agent: "test/1",
  capabilities: [],
  streamWindow: STREAM_WINDOW_BYTES,
  connectionWindow: CONNECTION_WINDOW_BYTES,
};

/** How long tokens and tunnels of tests last: less than a silent agent stays connected after the clock was moved. */
export const LEFT_MS = HEARTBEAT_TIMEOUT_MS / 2;

/** A request as the agent receives it. */
export interface ReceivedRequest {
  stream: number;
  flags: number;
  method: string;
  target: string;
  /** Alternating header names and values. */
  pairs: string[];
}

export class LiveTunnel {
  readonly id: string;
  readonly stub: DurableObjectStub<Tunnel>;

  /** Another object than the first of a tunnel: its id, and the number of the object. */
  constructor(id: string = crypto.randomUUID(), shard = 0) {
    this.id = id;
    this.stub = bindings.TUNNEL.getByName(toObjectName(id, shard));
  }

  /** An agent after hello and welcome. */
  async agent(admission: Partial<AgentAdmission> = {}, hello: Hello = HELLO): Promise<TestAgent> {
    const agent = await this.connect(admission);
    agent.send((writer) => writer.writeJson(FRAME.hello, 0, 0, hello));
    agent.welcome = Welcome.parse(parseJsonPayload((await agent.next(FRAME.welcome)).payload));
    return agent;
  }

  /** An agent's connection before its hello. */
  async connect(admission: Partial<AgentAdmission> = {}): Promise<TestAgent> {
    const full: AgentAdmission = {
      tunnelId: this.id,
      orgId: this.id,
      name: "shop",
      subdomain: "shop",
      url: "http://shop.localhost",
      tokenNonce: "token-a",
      tokenExpiresAtMs: Date.now() + 3600_000,
      endsAtMs: null,
      bandwidthLimitMbps: 10_000,
      remoteIp: "192.0.2.1",
      ...admission,
    };
    const answer = await this.stub.fetch(AGENT_CONNECT_URL, {
      headers: {
        upgrade: "websocket",
        "sec-websocket-protocol": SUBPROTOCOL,
        [ADMISSION_HEADER]: JSON.stringify(full),
      },
    });
    if (!answer.webSocket) throw new RefusedError(answer);
    return new TestAgent(answer.webSocket);
  }

  visit(path: string, init?: RequestInit): Promise<Response> {
    return this.stub.fetch(`http://shop.localhost${path}`, init);
  }

  /** A visitor's WebSocket, accepted by the agent. */
  async visitorSocket(agent: TestAgent): Promise<{ socket: TestSocket; stream: number }> {
    const answer = this.visit("/socket", { headers: { upgrade: "websocket" } });
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 101);
    const { webSocket } = await answer;
    return { socket: new TestSocket(webSocket!), stream };
  }

  /** Moves the clock, and runs the object's alarm. Restore the clock with `vi.useRealTimers()`. */
  async runAlarmAt(nowMs: number): Promise<void> {
    vi.useFakeTimers({ toFake: ["Date"], now: nowMs });
    // There is no alarm while the platform runs one.
    await vi.waitUntil(() => runDurableObjectAlarm(this.stub), WAIT_OPTIONS);
  }

  /** Hibernates the object: the next event wakes a new instance with the same sockets. */
  sleep(): Promise<void> {
    return evictDurableObject(this.stub, { webSockets: "hibernate" });
  }

  /** Ends the object and its sockets, as a crash of the process does: the next event begins a new instance. */
  crash(): Promise<void> {
    return evictDurableObject(this.stub, { webSockets: "close" });
  }
}

/** The object refused a WebSocket. */
export class RefusedError extends Error {
  readonly code: string | null;

  constructor({ status, headers }: Response) {
    const code = headers.get(ERROR_HEADER);
    super(`refused with ${status} ${code}`);
    this.code = code;
  }
}

/** A queue whose `next` waits for an item. */
class TestQueue<Item> {
  readonly #items: Item[] = [];
  #waiting: ((item: Item) => void) | undefined;

  push(item: Item): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) waiting(item);
    else this.#items.push(item);
  }

  next(): Promise<Item> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  get size(): number {
    return this.#items.length;
  }
}

/** A WebSocket whose messages are read one by one. */
export class TestSocket {
  readonly socket: WebSocket;
  readonly closed: Promise<SocketClose>;
  readonly #messages = new TestQueue<string | Uint8Array>();

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => {
      this.onMessage(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer));
    });
    this.closed = new Promise((resolve) => {
      socket.addEventListener("close", ({ code, reason, wasClean }) => {
        // As agents and browsers do. The platform leaves it to the Worker (`web_socket_manual_reply_to_close`).
        answerClose(socket, parseClose(code, reason, wasClean));
        resolve({ code, reason });
      });
    });
    socket.accept();
  }

  nextMessage(): Promise<string | Uint8Array> {
    return this.#messages.next();
  }

  protected onMessage(message: string | Uint8Array): void {
    this.#messages.push(message);
  }
}

export class TestAgent extends TestSocket {
  welcome: Welcome | undefined;
  readonly #frames = new TestQueue<Frame>();

  send(write: (writer: FrameWriter) => void): void {
    const writer = new FrameWriter();
    write(writer);
    this.socket.send(writer.take().slice());
  }

  /** The next frame, which must be of this type. */
  async next(type: FrameType): Promise<Frame> {
    const frame = await this.#frames.next();
    if (frame.type !== type) throw new Error(`frame ${frame.type} instead of ${type}`);
    return frame;
  }

  nextFrame(): Promise<Frame> {
    return this.#frames.next();
  }

  /** How many frames were received and not read. */
  get pendingFrames(): number {
    return this.#frames.size;
  }

  async nextRequest(): Promise<ReceivedRequest> {
    const { stream, flags, payload } = await this.next(FRAME.request);
    const [method = "", target = "", ...pairs] = parseRequestHead(payload, flags)!.head;
    return { stream, flags, method, target, pairs };
  }

  /** The stream's next data frame, as text. */
  async nextData(): Promise<{ text: string; isLast: boolean }> {
    const { flags, payload } = await this.next(FRAME.data);
    return { text: new TextDecoder().decode(payload), isLast: (flags & FLAG.end) !== 0 };
  }

  async nextCode(type: typeof FRAME.reset | typeof FRAME.close) {
    const frame = await this.next(type);
    return { stream: frame.stream, ...parseCodeAndText(frame.payload)! };
  }

  /** Sends the head of a response and, if given, its whole body. */
  respond(stream: number, status: number, pairs: string[] = [], body?: string): void {
    this.send((writer) => {
      writer.writeJson(FRAME.response, 0, stream, [status, ...pairs]);
      if (body !== undefined) writer.writeText(FRAME.data, FLAG.end, stream, body);
    });
  }

  protected override onMessage(message: string | Uint8Array): void {
    if (typeof message === "string") return super.onMessage(message);
    readFrames(message, (frame) => this.#frames.push(frame));
  }
}
