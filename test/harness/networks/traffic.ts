/** Traffic between a WireGuard client and a server that echoes. */
import { vi } from "vitest";
import { WAIT_OPTIONS } from "../timeouts.ts";
import type { WireGuardPeer } from "../wireguard/peer.ts";

let messages = 0;
const RESENT_AFTER_MS = 250;

/**
 * Sends a text until its echo has come back.
 * @returns how often it was sent.
 */
export async function ping(client: WireGuardPeer, to?: string): Promise<number> {
  messages += 1;
  const text = `ping ${messages}`;
  let sent = 0;
  let sentAt = -Infinity;
  await vi.waitUntil(() => {
    if (client.texts().includes(text)) return true;
    if (performance.now() - sentAt < RESENT_AFTER_MS) return false;
    sentAt = performance.now();
    sent += 1;
    client.send(text, to);
    return false;
  }, WAIT_OPTIONS);
  return sent;
}

/**
 * The other way: the server sends a text again and again until the client has it.
 * @returns how often it was sent.
 */
export async function push(server: WireGuardPeer, client: WireGuardPeer): Promise<number> {
  messages += 1;
  const text = `push ${messages}`;
  let sent = 0;
  let sentAt = -Infinity;
  await vi.waitUntil(() => {
    if (client.texts().includes(text)) return true;
    if (performance.now() - sentAt < RESENT_AFTER_MS) return false;
    sentAt = performance.now();
    sent += 1;
    server.send(text, client.publicKey);
    return false;
  }, WAIT_OPTIONS);
  return sent;
}

/**
 * Sends so many messages, a few each millisecond, and waits until no more echoes come.
 * @returns how many of them came back.
 */
export async function exchangeMany(client: WireGuardPeer, count: number): Promise<number> {
  messages += 1;
  const mark = `burst ${messages}.`;
  for (let sent = 0; sent < count;) {
    for (const end = Math.min(count, sent + 4); sent < end; sent += 1)
      client.send(`${mark}${sent}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const echoed = () => client.texts().filter((text) => text.startsWith(mark)).length;
  // What came back by the time that later messages have made the whole way is all that will.
  for (let last = 0; last < 5 && echoed() < count; last += 1) await ping(client);
  return echoed();
}
