/** Watchers of an organization, for tests inside workerd. */
import {
  WATCH_HEADER,
  WATCH_URL,
  type WatcherAdmission,
} from "../../../durable-objects/organization/watcher-admission.ts";
import type { CaptureBatch, WatchStatus } from "../../../durable-objects/rpc.ts";
import { WATCH_PROTOCOL, type WatchMessage } from "../../../protocol/captures/watch-protocol.ts";
import { RefusedError, TestSocket } from "./live-tunnel.ts";
import { TestOrganization } from "./test-organization.ts";

export class WatchedOrganization extends TestOrganization {
  /** @throws RefusedError */
  async watcher(admission: Partial<WatcherAdmission> = {}): Promise<TestWatcher> {
    const full: WatcherAdmission = {
      credentialId: crypto.randomUUID(),
      userId: crypto.randomUUID(),
      tunnelId: null,
      isBatched: false,
      receivesQueries: true,
      ...admission,
    };
    const answer = await this.stub.fetch(WATCH_URL, {
      headers: {
        upgrade: "websocket",
        "sec-websocket-protocol": WATCH_PROTOCOL,
        [WATCH_HEADER]: JSON.stringify(full),
      },
    });
    if (!answer.webSocket) throw new RefusedError(answer);
    return new TestWatcher(answer.webSocket);
  }

  /** Delivers numbered messages in place of captured requests. */
  deliverNumbered(tunnelId: string, from: number, count: number, missed = 0): Promise<WatchStatus> {
    const messages = Array.from({ length: count }, (_, i) => JSON.stringify({ number: from + i }));
    const batch: CaptureBatch = { tunnelId, messages, missed };
    return this.stub.deliverCaptures(batch);
  }
}

/** Sent in place of a captured request. */
interface NumberedMessage {
  number: number;
}

export class TestWatcher extends TestSocket {
  readonly numbers: number[] = [];
  /** How many messages contained them. */
  messages = 0;
  missed = 0;
  /** Syncs that are not answered yet. */
  syncs: number[] = [];

  protected override onMessage(message: string | Uint8Array): void {
    if (message === "pong") return super.onMessage(message);
    const parsed = JSON.parse(String(message)) as
      | NumberedMessage
      | Exclude<WatchMessage, { id: string }>
      | { type: "requests"; requests: NumberedMessage[] };
    if (!("type" in parsed)) this.#addNumbered([parsed]);
    else if (parsed.type === "missed") this.missed += parsed.count;
    else if (parsed.type === "sync") this.syncs.push(parsed.n);
    else this.#addNumbered(parsed.requests as NumberedMessage[]);
  }

  #addNumbered(messages: NumberedMessage[]): void {
    this.messages += 1;
    this.numbers.push(...messages.map(({ number }) => number));
  }

  answer(): void {
    for (const n of this.syncs) this.socket.send(JSON.stringify({ type: "sync", n }));
    this.syncs = [];
  }
}
