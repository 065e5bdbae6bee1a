/** What one tunnel tells at once, put into words once for all watchers. */
import type { CaptureNews } from "../rpc.ts";

export class News {
  readonly messages: string[];
  readonly sizes: number[];
  readonly missed: number;
  #whole: string | undefined;

  constructor({ messages, missed }: Omit<CaptureNews, "tunnelId">) {
    this.messages = messages;
    this.sizes = messages.map(({ length }) => length);
    this.missed = missed;
  }

  /** The first so many in one message. */
  batch(count: number): string {
    if (count < this.messages.length) return batchOf(this.messages.slice(0, count));
    return (this.#whole ??= batchOf(this.messages));
  }
}

function batchOf(messages: string[]): string {
  return `{"type":"requests","requests":[${messages.join(",")}]}`;
}
