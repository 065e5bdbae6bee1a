/** A relay for tests of an agent's control connection: a WebSocket server that answers each connection as the test says. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { vi } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { RELAY_SUBPROTOCOL } from "../../../protocol/relay/datagrams.ts";
import type { RelayAccess } from "../../../protocol/schemas/networks.ts";
import { MINUTE_MS, SECOND_MS } from "../../../shared/time.ts";

/** The public port of the tunnel that the agent serves. */
export const PUBLIC_PORT = 20_000;

const WELCOME = JSON.stringify({
  type: "welcome",
  kind: "tunnel",
  epoch: "one",
  association: 1,
  streamKey: "AAAA",
  pool: 1,
  publicEndpoint: `127.0.0.1:${PUBLIC_PORT}`,
});

export interface ScriptedRelay {
  port: number;
  stop(): Promise<void>;
}

export function sendWelcome(socket: WebSocket, onSent?: () => void): void {
  socket.send(WELCOME, onSent);
}

/** @param port 0: any free one. */
export async function startScriptedRelay(
  onConnection: (socket: WebSocket) => void = sendWelcome,
  port = 0,
): Promise<ScriptedRelay> {
  const server = new WebSocketServer({
    port,
    host: "127.0.0.1",
    handleProtocols: () => RELAY_SUBPROTOCOL,
  });
  server.on("connection", (socket) => onConnection(socket));
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      for (const socket of server.clients) socket.terminate();
      server.close();
      await once(server, "close");
    },
  };
}

/**
 * What the API tells an agent about the relay at this port.
 * @param lifetimeMs of the ticket, in whole seconds. @param clockMs of the API.
 */
export function buildRelayAccess(
  port: number,
  lifetimeMs = 5 * MINUTE_MS,
  clockMs = Date.now(),
): RelayAccess {
  const expiresAtMs = clockMs + lifetimeMs;
  const toSeconds = (ms: number): number => Math.floor(ms / SECOND_MS);
  const claims = { iat: toSeconds(clockMs), exp: toSeconds(expiresAtMs) };
  return {
    ticket: `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.signature`,
    expires_at: new Date(expiresAtMs).toISOString(),
    relay: { id: "main", url: `ws://127.0.0.1:${port}`, host: "127.0.0.1" },
    port: PUBLIC_PORT,
  };
}

/** The agent connects again without its delays, until the mocks are restored. */
export function skipRetryDelays(): void {
  const { setTimeout } = globalThis;
  vi.spyOn(globalThis, "setTimeout").mockImplementation((run: () => void, ms = 0, ...args) =>
    setTimeout(run, ms >= 500 && ms <= 5_000 ? 0 : ms, ...args),
  );
}
