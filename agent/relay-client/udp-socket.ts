/** UDP sockets to the relay: connected, so that only the relay's datagrams are received. */
import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { stripBrackets } from "../../shared/hosts.ts";

/**
 * The buffer size that is requested for each direction. The system default, about 200 KiB, overflows within milliseconds
 * at 300 Mbit/s whenever the process does something else.
 */
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
/** A smaller size than this is not requested: the system's default is about the same. */
const SOCKET_BUFFER_MIN_BYTES = 256 * 1024;

export interface RelayAddress {
  address: string;
  family: 4 | 6;
}

export interface SocketBuffers {
  receiveBytes: number;
  sendBytes: number;
}

/** All addresses of a URL's host, in the resolver's order. @throws when it has none. */
export async function resolveRelay(host: string): Promise<RelayAddress[]> {
  const addresses = await lookup(stripBrackets(host), { all: true, verbatim: true });
  return addresses.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}

/**
 * Opens a socket and connects it. Errors of a UDP socket (ECONNREFUSED, ENETUNREACH) say that one datagram
 * was lost, which the protocol above detects by itself: the socket stays open.
 * @param onDatagram may keep the buffer: Node.js allocates one for each datagram.
 * @returns null when the system can't do it now: no route, no IPv6, no file descriptor.
 */
export function connectSocket(
  { address, family }: RelayAddress,
  port: number,
  onDatagram: (bytes: Buffer) => void,
): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = createSocket(family === 6 ? "udp6" : "udp4");
    let isConnected = false;
    socket.on("error", () => {
      if (isConnected) return;
      closeSocket(socket);
      resolve(null);
    });
    socket.on("message", onDatagram);
    try {
      socket.connect(port, address, (error?: Error) => {
        if (error) {
          closeSocket(socket);
          return resolve(null);
        }
        isConnected = true;
        growBuffers(socket);
        resolve(socket);
      });
    } catch {
      closeSocket(socket);
      resolve(null);
    }
  });
}

/** Linux reduces a size that is too large; other systems refuse it. */
export function growBuffers(socket: Socket, wantedBytes = SOCKET_BUFFER_BYTES): void {
  for (const set of ["setRecvBufferSize", "setSendBufferSize"] as const) {
    for (let bytes = wantedBytes; bytes >= SOCKET_BUFFER_MIN_BYTES; bytes /= 2) {
      try {
        socket[set](bytes);
        break;
      } catch {
        // Try a smaller size.
      }
    }
  }
}

/** The sizes that the system granted. Linux reports twice the size, because it includes its own overhead. */
export function readBuffers(socket: Socket): SocketBuffers {
  const factor = process.platform === "linux" ? 2 : 1;
  return {
    receiveBytes: socket.getRecvBufferSize() / factor,
    sendBytes: socket.getSendBufferSize() / factor,
  };
}

/** Closing twice throws. */
export function closeSocket(socket: Socket): void {
  try {
    socket.close();
  } catch {
    // Already closed.
  }
}
