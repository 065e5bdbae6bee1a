/** One batch of captured requests, serialized once for all watchers. */
import type { CaptureBatch } from "../rpc.ts";

export class SerializedBatch {
  readonly messages: string[];
  readonly sizes: number[];
  readonly missed: number;
  #joinedAll: string | undefined;

  constructor({ messages, missed }: Omit<CaptureBatch, "tunnelId">) {
    this.messages = messages;
    this.sizes = messages.map(({ length }) => length);
    this.missed = missed;
  }

  /** The first `count` requests in one message. */
  joinFirst(count: number): string {
    if (count < this.messages.length) return join(this.messages.slice(0, count));
    return (this.#joinedAll ??= join(this.messages));
  }
}

function join(messages: string[]): string {
  return `{"type":"requests","requests":[${messages.join(",")}]}`;
}
