/** The relay's UDP sockets. */
import { createSocket } from "node:dgram";
import { expect, test, vi } from "vitest";
import { Metrics } from "../../../relay/metrics.ts";
import { bindUdp } from "../../../relay/udp/sockets.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

test("a datagram without a source port, to which nothing can be sent, is dropped", async () => {
  const metrics = new Metrics();
  const received: string[] = [];
  const onDatagram = (message: Buffer): void => void received.push(message.toString());
  const socket = await bindUdp("127.0.0.1", 0, { metrics, onDatagram });
  const sender = createSocket("udp4");
  try {
    // Only a raw socket, which needs root, can send from port 0.
    const source = { address: "127.0.0.1", family: "IPv4", port: 0, size: 4 };
    socket.emit("message", Buffer.from("none"), source);
    sender.send("some", socket.address().port, "127.0.0.1");
    await vi.waitUntil(() => received.length > 0, WAIT_OPTIONS);
    expect(received).toEqual(["some"]);
    expect(metrics.dropped.no_source_port).toBe(1);
  } finally {
    sender.close();
    socket.close();
  }
});
