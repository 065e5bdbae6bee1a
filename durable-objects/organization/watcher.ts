/** One watcher's connection: which tunnels it watches, and how much it may be sent. */
import type { WatcherAdmission } from "./watcher-admission.ts";
import {
  acknowledge,
  addMissed,
  admitMessages,
  createFlowState,
  isStuck,
  takeDueSync,
  takeMissedCount,
  type WatcherFlowState,
  type FlowLimits,
} from "./watcher-flow-control.ts";
import type { SerializedBatch } from "./serialized-batch.ts";

/** Survives hibernation, in the attachment of the watcher's socket. */
interface WatcherAttachment extends WatcherAdmission {
  /** The name is part of the stored format. */
  pace: WatcherFlowState;
}

/** What a watcher was sent of one batch. */
interface SentRequests {
  messages: number;
  bytes: number;
}

export class Watcher {
  readonly admission: WatcherAdmission;
  readonly #socket: WebSocket;
  readonly #state: WatcherFlowState;

  private constructor(socket: WebSocket, { pace, ...admission }: WatcherAttachment) {
    this.#socket = socket;
    this.#state = pace;
    this.admission = admission;
  }

  static create(socket: WebSocket, admission: WatcherAdmission): Watcher {
    const watcher = new Watcher(socket, { ...admission, pace: createFlowState(Date.now()) });
    watcher.#save();
    return watcher;
  }

  /** After hibernation. */
  static restore(socket: WebSocket): Watcher {
    return new Watcher(socket, socket.deserializeAttachment() as WatcherAttachment);
  }

  get isBehind(): boolean {
    return this.#state.behindSinceMs !== null;
  }

  watches(tunnelId: string): boolean {
    return this.admission.tunnelId === null || this.admission.tunnelId === tunnelId;
  }

  /**
   * @param messagesMax how many WebSocket messages may be sent with requests, at least 1.
   * @returns the bytes and messages that were sent with requests.
   */
  deliver(complete: SerializedBatch, windowBytes: number, messagesMax: number): SentRequests {
    const { isBatched, receivesQueries } = this.admission;
    const batch = receivesQueries ? complete : complete.withoutQueries;
    const limits = this.#getLimits(windowBytes);
    this.#reportMissed(limits);
    const { sentBytes } = this.#state;
    const requestsMax = isBatched ? Infinity : messagesMax;
    const admitted = admitMessages(this.#state, batch.sizes, limits, requestsMax);
    if (admitted > 0) {
      if (isBatched) this.#send(batch.joinFirst(admitted));
      else for (const message of batch.messages.slice(0, admitted)) this.#send(message);
    }
    addMissed(this.#state, batch.missed, limits.nowMs);
    this.#reportMissed(limits);
    this.#sendSyncIfDue(limits);
    this.#save();
    const messages = isBatched ? Math.min(1, admitted) : admitted;
    return { messages, bytes: this.#state.sentBytes - sentBytes };
  }

  /** The watcher is sent none of these requests. Its state is saved when it catches up. */
  skip({ messages, missed }: SerializedBatch): void {
    addMissed(this.#state, messages.length + missed, Date.now());
  }

  /** The watcher has answered sync `n`: it has read everything up to it. */
  acknowledge(n: number, windowBytes: number): void {
    const limits = this.#getLimits(windowBytes);
    acknowledge(this.#state, n);
    this.#reportMissed(limits);
    this.#sendSyncIfDue(limits);
    this.#save();
  }

  /** Called from time to time while the watcher is behind. @returns false when it must be disconnected. */
  tryToCatchUp(windowBytes: number): boolean {
    const limits = this.#getLimits(windowBytes);
    this.#reportMissed(limits);
    this.#save();
    return !isStuck(this.#state, limits);
  }

  #reportMissed(limits: FlowLimits): void {
    const count = takeMissedCount(this.#state, limits);
    if (count > 0) this.#send(JSON.stringify({ type: "missed", count }));
  }

  #sendSyncIfDue(limits: FlowLimits): void {
    const n = takeDueSync(this.#state, limits);
    if (n !== null) this.#send(JSON.stringify({ type: "sync", n }));
  }

  #getLimits(windowBytes: number): FlowLimits {
    // Only newer versions of the platform have this property.
    const { bufferedAmount: queuedBytes } = this.#socket as { bufferedAmount?: number };
    return { nowMs: Date.now(), windowBytes, queuedBytes };
  }

  #send(message: string): void {
    try {
      this.#socket.send(message);
    } catch {
      // The socket is closed; its close event follows.
    }
  }

  #save(): void {
    const attachment: WatcherAttachment = { ...this.admission, pace: this.#state };
    this.#socket.serializeAttachment(attachment);
  }
}
