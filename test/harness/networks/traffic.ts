/** Traffic between a WireGuard client and an echoing server. */
import { vi } from "vitest";
import { WAIT_OPTIONS } from "../timeouts.ts";
import type { WireGuardPeer } from "../wireguard/peer.ts";

let messages = 0;
const RESENT_AFTER_MS = 50;

/**
 * Sends a text repeatedly until its echo arrives.
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
 * In the other direction: the server sends a text repeatedly until the client receives it.
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
 * Sends so many messages, a few each millisecond, and waits until no more echoes arrive.
 * @returns the number of echoes.
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
  // Echoes that have not arrived when those of later messages have are lost.
  for (let last = 0; last < 5 && echoed() < count; last += 1) await ping(client);
  return echoed();
}
