/** Watchers of an organization as its object sees them, for tests inside workerd. */
import {
  WATCH_HEADER,
  WATCH_URL,
  type WatcherAdmission,
} from "../../../durable-objects/organization/admission.ts";
import type { CaptureBatch, WatchStatus } from "../../../durable-objects/rpc.ts";
import { WATCH_PROTOCOL, type WatchMessage } from "../../../protocol/schemas/inspector/watching.ts";
import { TestSocket } from "./live-tunnel.ts";
import { TestOrganization } from "./roster.ts";

export class WatchedOrganization extends TestOrganization {
  /** @throws the refusal, when there is one. */
  async watcher(admission: Partial<WatcherAdmission> = {}): Promise<TestWatcher> {
    const full: WatcherAdmission = {
      sessionId: crypto.randomUUID(),
      userId: crypto.randomUUID(),
      tunnelId: null,
      isBatched: false,
      ...admission,
    };
    const answer = await this.stub.fetch(WATCH_URL, {
      headers: {
        upgrade: "websocket",
        "sec-websocket-protocol": WATCH_PROTOCOL,
        [WATCH_HEADER]: JSON.stringify(full),
      },
    });
    // Thrown as it is, for a test to look at.
    // eslint-disable-next-line @typescript-eslint/only-throw-error
    if (!answer.webSocket) throw answer;
    return new TestWatcher(answer.webSocket);
  }

  /** What a tunnel would tell: so many requests, numbered. */
  news(tunnelId: string, from: number, count: number, missed = 0): Promise<WatchStatus> {
    const messages = Array.from({ length: count }, (_, i) => JSON.stringify({ number: from + i }));
    const news: CaptureBatch = { tunnelId, messages, missed };
    return this.stub.deliverCaptures(news);
  }
}

/** What these tests tell in place of captured requests. */
export interface Numbered {
  number: number;
}

export class TestWatcher extends TestSocket {
  readonly numbers: number[] = [];
  /** How many messages brought them. */
  messages = 0;
  missed = 0;
  /** Yet to be answered. */
  syncs: number[] = [];

  protected override received(message: string | Uint8Array): void {
    if (message === "pong") return super.received(message);
    const told = JSON.parse(String(message)) as
      Numbered | Exclude<WatchMessage, { id: string }> | { type: "requests"; requests: Numbered[] };
    if (!("type" in told)) this.numbers.push((this.messages++, told.number));
    else if (told.type === "missed") this.missed += told.count;
    else if (told.type === "sync") this.syncs.push(told.n);
    else {
      this.messages += 1;
      this.numbers.push(...(told.requests as Numbered[]).map(({ number }) => number));
    }
  }

  answer(): void {
    for (const n of this.syncs) this.socket.send(JSON.stringify({ type: "sync", n }));
    this.syncs = [];
  }
}
