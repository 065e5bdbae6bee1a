/** One batch of captured requests, serialized once for all watchers. */
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import type { CaptureBatch } from "../rpc.ts";

export class SerializedBatch {
  readonly messages: string[];
  readonly sizes: number[];
  readonly missed: number;
  #joinedAll: string | undefined;
  #withoutQueries: SerializedBatch | undefined;

  constructor({ messages, missed }: Omit<CaptureBatch, "tunnelId">) {
    this.messages = messages;
    this.sizes = messages.map(({ length }) => length);
    this.missed = missed;
  }

  get withoutQueries(): SerializedBatch {
    const { messages, missed } = this;
    return (this.#withoutQueries ??= new SerializedBatch({
      messages: messages.map(removeQuery),
      missed,
    }));
  }

  /** The first `count` requests in one message. */
  joinFirst(count: number): string {
    if (count < this.messages.length) return join(this.messages.slice(0, count));
    return (this.#joinedAll ??= join(this.messages));
  }
}

function removeQuery(message: string): string {
  const { query: _, ...summary } = JSON.parse(message) as CaptureSummary;
  return JSON.stringify(summary);
}

function join(messages: string[]): string {
  return `{"type":"requests","requests":[${messages.join(",")}]}`;
}
