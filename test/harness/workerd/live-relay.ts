/** A Relay object whose relay is played by the test. For tests inside workerd. */
import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import type { Relay } from "../../../durable-objects/relay.ts";
import { RELAY_LINK_URL } from "../../../durable-objects/relay/link-attachment.ts";
import {
  ApiToRelayMessage,
  type NetworkStatus,
  type RelayHello,
  type RelayStatus,
} from "../../../protocol/relay/link.ts";
import { TestSocket } from "./live-tunnel.ts";

const bindings = env as unknown as { RELAY: DurableObjectNamespace<Relay> };

export class LiveRelay {
  readonly id = `relay-${crypto.randomUUID()}`;
  readonly stub = bindings.RELAY.getByName(this.id);

  /** A link before its hello. */
  async connect(): Promise<TestRelayLink> {
    const answer = await this.stub.fetch(RELAY_LINK_URL, { headers: { upgrade: "websocket" } });
    if (!answer.webSocket) throw new Error(`refused with ${answer.status}`);
    return new TestRelayLink(answer.webSocket);
  }

  /** A link after hello and welcome. */
  async link(hello: Partial<RelayHello> = {}): Promise<TestRelayLink> {
    const link = await this.connect();
    link.hello({ relayId: this.id, ...hello });
    const welcome = await link.next();
    if (welcome.type !== "welcome") throw new Error(`${welcome.type} instead of a welcome`);
    return link;
  }

  sleep(): Promise<void> {
    return evictDurableObject(this.stub, { webSockets: "hibernate" });
  }
}

export class TestRelayLink extends TestSocket {
  hello(hello: Partial<RelayHello>): void {
    const full: RelayHello = {
      type: "hello",
      relayId: "main",
      version: "test",
      host: "relay.example.com",
      url: "wss://relay.example.com",
      firstPort: 40_001,
      lastPort: 40_999,
      epoch: "epoch-1",
      ...hello,
    };
    this.socket.send(JSON.stringify(full));
  }

  report(status: Partial<RelayStatus>): void {
    this.socket.send(JSON.stringify({ type: "status", networks: [], tunnels: [], ...status }));
  }

  /** The next message. Those about reserved ports are skipped, because they can arrive at any time. */
  async next(): Promise<ApiToRelayMessage> {
    for (;;) {
      const message = ApiToRelayMessage.parse(JSON.parse(String(await this.nextMessage())));
      if (message.type !== "ports") return message;
    }
  }

  /** The next message about reserved ports. */
  async ports(): Promise<ApiToRelayMessage> {
    for (;;) {
      const message = ApiToRelayMessage.parse(JSON.parse(String(await this.nextMessage())));
      if (message.type === "ports") return message;
    }
  }
}

/** The status of a network that is served over UDP, with one device. */
export function networkStatus(
  networkId: string,
  change: Partial<NetworkStatus> = {},
  bytes = { rxBytes: 10, txBytes: 20 },
): NetworkStatus {
  return {
    networkId,
    orgId: crypto.randomUUID(),
    state: "udp",
    latencyMs: 12,
    loss: 0,
    lastSeenAtMs: 1_700_000_000_000,
    isLocalListening: true,
    wrongKeyHandshakes: 0,
    devices: [
      {
        publicKey: "device",
        lastHandshakeAtMs: 1_700_000_000_000,
        endpoint: "198.51.100.7:1234",
        ...bytes,
      },
    ],
    ...change,
  };
}
