/** The relay's UDP sockets: with large buffers, and without a DNS look-up for each datagram. */
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import { isIPv6 } from "node:net";
import type { Metrics } from "../metrics.ts";

const UDP_BUFFER_BYTES = 4 * 1024 * 1024;
/** Node.js queues datagrams that the kernel does not accept: beyond this they are dropped. */
const UDP_SEND_QUEUE_MAX_BYTES = 1024 * 1024;

export interface UdpBuffers {
  /** The sizes that the kernel granted, which may be less than requested. */
  receiveBytes: number;
  sendBytes: number;
}

interface UdpReceiver {
  metrics: Pick<Metrics, "countDrop">;
  onDatagram: (message: Buffer, source: RemoteInfo) => void;
}

/** @throws the system's error when the port can't be bound: EADDRINUSE, EACCES. */
export async function bindUdp(
  bind: string,
  port: number,
  { metrics, onDatagram }: UdpReceiver,
): Promise<Socket> {
  const type = isIPv6(bind) ? "udp6" : "udp4";
  const socket = createSocket({
    type,
    recvBufferSize: UDP_BUFFER_BYTES,
    sendBufferSize: UDP_BUFFER_BYTES,
    // Datagrams are only sent to addresses. The default would call dns.lookup each time.
    lookup: (address, _options, callback) => callback(null, address, type === "udp6" ? 6 : 4),
  });
  // Without a DNS look-up the event can occur before `bind` returns.
  const listening = once(socket, "listening");
  socket.bind({ port, address: bind });
  try {
    await listening;
  } catch (error) {
    socket.close();
    throw error;
  }
  // Errors of single datagrams (no route, too large) count as loss.
  socket.on("error", () => {});
  socket.on("message", (message, source) => {
    // UDP allows a source port of 0 (RFC 768), but nothing can be sent to it: Node.js throws.
    if (source.port === 0) metrics.countDrop("no_source_port");
    else onDatagram(message, source);
  });
  return socket;
}

export function readUdpBuffers(socket: Socket): UdpBuffers {
  return { receiveBytes: socket.getRecvBufferSize(), sendBytes: socket.getSendBufferSize() };
}

/** Whether datagrams should be dropped, because Node.js has queued too many that the kernel did not accept. */
export function isSendQueueFull(socket: Socket): boolean {
  return socket.getSendQueueSize() > UDP_SEND_QUEUE_MAX_BYTES;
}
