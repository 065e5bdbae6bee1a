/** The connection of one agent, as its tunnel's object writes to it. */
import { expect, test } from "vitest";
import { AgentLink } from "../../../../durable-objects/tunnel/agents/agent-link.ts";
import { BufferedBytes } from "../../../../durable-objects/tunnel/buffered-bytes.ts";
import { Pacer } from "../../../../durable-objects/tunnel/proxy/pacer.ts";
import type { AgentAttachment } from "../../../../durable-objects/tunnel/socket-attachments.ts";
import { HEARTBEAT_TIMEOUT_MS } from "../../../../protocol/limits.ts";
import { FRAME, RESET } from "../../../../protocol/wire/frames.ts";
import { HOUR_MS } from "../../../../shared/time.ts";

const LARGE_HEAD = "a".repeat(100_000);

/**
 * @param receivedAtMs when its agent has last sent something.
 * @returns the link, and how much memory each message that it sent was a part of.
 */
function createLink(receivedAtMs = 0) {
  const bufferSizes: number[] = [];
  const socket = {
    send: (message: Uint8Array) => void bufferSizes.push(message.buffer.byteLength),
  };
  const link = new AgentLink(socket as unknown as WebSocket, {} as AgentAttachment, receivedAtMs, {
    buffered: new BufferedBytes(),
    pace: { toAgent: new Pacer(0), toVisitors: new Pacer(0) },
    onViolation: () => undefined,
  });
  return { link, bufferSizes };
}

const stream = {
  onFrame: () => true,
  onReset: () => undefined,
  onConnectionLost: () => undefined,
};

test.each(["finish", "reset"] as const)(
  "keeps no large buffer when the exchange that needed it has ended: %s",
  async (end) => {
    const { link, bufferSizes } = createLink();
    const id = link.open(stream);
    link.send((writer) => writer.writeText(FRAME.request, 0, id, LARGE_HEAD));
    await Promise.resolve();
    if (end === "finish") link.finish(id);
    else link.reset(id, RESET.canceled, "");
    for (let n = 0; n < 10; n++) {
      link.send((writer) => writer.writeCredit(id, 1));
      await Promise.resolve();
    }
    expect(bufferSizes[0]).toBeGreaterThan(LARGE_HEAD.length);
    expect(Math.max(...bufferSizes.slice(1))).toBeLessThan(32 * 1024);
  },
);

test.each([0, HOUR_MS])(
  "an agent that sends nothing is noticed also after the clock was set back by %i ms",
  (backMs) => {
    const beforeMs = 2 * HOUR_MS;
    const { link } = createLink(beforeMs);
    const isSilent = (nowMs: number) => link.isSilent(nowMs, HEARTBEAT_TIMEOUT_MS, () => beforeMs);
    const nowMs = beforeMs - backMs;
    expect(isSilent(nowMs)).toBe(false);
    expect(isSilent(nowMs + HEARTBEAT_TIMEOUT_MS)).toBe(false);
    expect(isSilent(nowMs + HEARTBEAT_TIMEOUT_MS + 1)).toBe(true);
  },
);
