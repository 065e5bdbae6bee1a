/** Numbered messages over WebSockets and TCP tunnels, which the local server sends back in order. */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import WebSocket from "ws";
import type { ConversationEntry } from "../history.ts";
import { repeat, type LoadContext } from "./load.ts";

const PAUSE_MS = 500;
const MESSAGES_MAX = 60;
const MESSAGE_PAUSE_MS = 80;
/** An answer that takes longer ends the conversation: its connection may be half-open. */
const MESSAGE_MAX_MS = 15_000;
const PADDING = "p".repeat(1_000);

type Conversation = Pick<ConversationEntry, "sent" | "received" | "mismatch" | "end">;

export function runWebSockets(context: LoadContext): Promise<void> {
  const tunnels = [...context.targets.hosts.keys()];
  return repeat(context, PAUSE_MS, () => {
    const tunnel = context.random.pick(tunnels);
    return record(context, "websocket", tunnel, () => converseOverWebSocket(context, tunnel));
  });
}

export async function runTcpStreams(context: LoadContext): Promise<void> {
  const { streamPort } = context.targets;
  if (streamPort === undefined) return;
  await repeat(context, PAUSE_MS, () =>
    record(context, "tcp", "tcp", () => converseOverTcp(context, streamPort)),
  );
}

/** Records the conversation in the history. */
async function record(
  { history }: Pick<LoadContext, "history">,
  over: ConversationEntry["over"],
  tunnel: string,
  converse: () => Promise<Conversation>,
): Promise<void> {
  const startedAtMs = history.now();
  const conversation = await converse();
  const endedAtMs = history.now();
  history.add({ type: "conversation", over, tunnel, startedAtMs, endedAtMs, ...conversation });
}

async function converseOverWebSocket(
  { targets, random, signal, nextId }: LoadContext,
  tunnel: string,
): Promise<Conversation> {
  const id = nextId();
  const socket = new WebSocket(`ws://127.0.0.1:${targets.visitorPort}/socket`, {
    headers: { host: targets.hosts.get(tunnel)! },
    handshakeTimeout: MESSAGE_MAX_MS,
  });
  const messages = new MessageComparison(id);
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  socket.on("error", () => undefined);
  socket.on("close", (code) => end(`closed with ${code}`));
  socket.on("message", (data) => messages.receive((data as Buffer).toString("latin1")));
  socket.on("open", () => {
    void sendMessages(messages, random.below(MESSAGES_MAX) + 1, signal, (text) =>
      socket.send(text),
    ).then((isAnswered) => {
      if (isAnswered) socket.close(1000);
      else end("an answer is missing");
    });
  });
  const reason = await ended;
  socket.terminate();
  return messages.summarize(reason);
}

export async function converseOverTcp(
  { random, signal, nextId }: LoadContext,
  port: number,
): Promise<Conversation> {
  const messages = new MessageComparison(nextId());
  const socket = connect(port, "127.0.0.1");
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  let pending = "";
  socket.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? "error"));
  socket.on("close", () => end("closed"));
  // A half-open connection never closes by itself.
  socket.setTimeout(MESSAGE_MAX_MS, () => end("silent"));
  socket.on("data", (bytes: Buffer) => {
    const lines = (pending + bytes.toString("latin1")).split("\n");
    pending = lines.pop()!;
    for (const line of lines) messages.receive(line);
  });
  socket.on("connect", () => {
    void sendMessages(messages, random.below(MESSAGES_MAX) + 1, signal, (text) =>
      socket.write(`${text}\n`),
    ).then((isAnswered) => {
      if (isAnswered) socket.end();
      else end("an answer is missing");
    });
  });
  const reason = await ended;
  socket.destroy();
  return messages.summarize(reason);
}

/** @returns whether all of them were answered. */
async function sendMessages(
  messages: MessageComparison,
  count: number,
  signal: AbortSignal,
  send: (text: string) => void,
): Promise<boolean> {
  for (let at = 0; at < count && !signal.aborted; at += 1) {
    send(messages.next());
    await sleep(MESSAGE_PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
  return messages.waitForAnswers(MESSAGE_MAX_MS);
}

/** The messages of one conversation. Each must come back once, in order, and none of another conversation. */
class MessageComparison {
  readonly #id: string;
  #sent = 0;
  #received = 0;
  #mismatch: string | undefined;
  #onAnswer: () => void = () => undefined;

  constructor(id: string) {
    this.#id = id;
  }

  next(): string {
    return this.#format(this.#sent++);
  }

  receive(text: string): void {
    if (text !== this.#format(this.#received)) {
      this.#mismatch ??= `${text.slice(0, 60)} instead of number ${this.#received} of ${this.#id}`;
    }
    this.#received += 1;
    this.#onAnswer();
  }

  /** @returns whether all messages came back in time. */
  async waitForAnswers(maxMs: number): Promise<boolean> {
    const deadline = AbortSignal.timeout(maxMs);
    while (this.#received < this.#sent && !deadline.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onAnswer = resolve;
      deadline.addEventListener("abort", () => resolve(), { once: true });
      await promise;
    }
    return this.#received >= this.#sent;
  }

  summarize(end: string): Conversation {
    const mismatch = this.#mismatch;
    const counts = { sent: this.#sent, received: this.#received, end };
    return mismatch === undefined ? counts : { ...counts, mismatch };
  }

  #format(number: number): string {
    return `${this.#id} ${number} ${PADDING.slice(0, (number * 37) % PADDING.length)}`;
  }
}
