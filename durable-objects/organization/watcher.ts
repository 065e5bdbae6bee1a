/** One watcher's connection: which tunnels it watches, and how much it may be sent. */
import type { WatcherAdmission } from "./admission.ts";
import {
  acknowledge,
  addMissed,
  admitMessages,
  createPace,
  isStuck,
  takeDueSync,
  takeMissedCount,
  type WatcherFlowState,
  type FlowLimits,
} from "./watcher-flow-control.ts";
import type { SerializedBatch } from "./serialized-batch.ts";

/** Survives hibernation, in the attachment of the watcher's socket. */
interface WatcherAttachment extends WatcherAdmission {
  pace: WatcherFlowState;
}

export class Watcher {
  readonly admission: WatcherAdmission;
  readonly #socket: WebSocket;
  readonly #pace: WatcherFlowState;

  private constructor(socket: WebSocket, { pace, ...admission }: WatcherAttachment) {
    this.#socket = socket;
    this.#pace = pace;
    this.admission = admission;
  }

  static create(socket: WebSocket, admission: WatcherAdmission): Watcher {
    const watcher = new Watcher(socket, { ...admission, pace: createPace(Date.now()) });
    watcher.#save();
    return watcher;
  }

  /** After hibernation. */
  static restore(socket: WebSocket): Watcher {
    return new Watcher(socket, socket.deserializeAttachment() as WatcherAttachment);
  }

  get isBehind(): boolean {
    return this.#pace.behindSinceMs !== null;
  }

  watches(tunnelId: string): boolean {
    return this.admission.tunnelId === null || this.admission.tunnelId === tunnelId;
  }

  deliver(batch: SerializedBatch, windowBytes: number): void {
    const bounds = this.#getBounds(windowBytes);
    this.#reportMissed(bounds);
    const admitted = admitMessages(this.#pace, batch.sizes, bounds);
    if (admitted > 0) {
      if (this.admission.isBatched) this.#send(batch.joinFirst(admitted));
      else for (const message of batch.messages.slice(0, admitted)) this.#send(message);
    }
    addMissed(this.#pace, batch.missed, bounds.nowMs);
    this.#reportMissed(bounds);
    this.#sendSyncIfDue(bounds);
    this.#save();
  }

  /** The watcher has answered sync `n`: it has read everything up to it. */
  acknowledge(n: number, windowBytes: number): void {
    const bounds = this.#getBounds(windowBytes);
    acknowledge(this.#pace, n);
    this.#reportMissed(bounds);
    this.#sendSyncIfDue(bounds);
    this.#save();
  }

  /** Called from time to time while the watcher is behind. @returns false when it must be disconnected. */
  tryToCatchUp(windowBytes: number): boolean {
    const bounds = this.#getBounds(windowBytes);
    this.#reportMissed(bounds);
    this.#save();
    return !isStuck(this.#pace, bounds);
  }

  #reportMissed(bounds: FlowLimits): void {
    const count = takeMissedCount(this.#pace, bounds);
    if (count > 0) this.#send(JSON.stringify({ type: "missed", count }));
  }

  #sendSyncIfDue(bounds: FlowLimits): void {
    const n = takeDueSync(this.#pace, bounds);
    if (n !== null) this.#send(JSON.stringify({ type: "sync", n }));
  }

  #getBounds(windowBytes: number): FlowLimits {
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
    const attachment: WatcherAttachment = { ...this.admission, pace: this.#pace };
    this.#socket.serializeAttachment(attachment);
  }
}
