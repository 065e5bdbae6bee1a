/** What a visitor sends before the local server has accepted its connection. */
import type { Socket } from "node:net";
import { setReceiver } from "../../sockets/socket-reader.ts";

/** When a visitor sends more, the agent reads the rest after the local server has accepted. */
const EARLY_MAX_BYTES = 64 * 1024;

/**
 * Reads them, because a socket that is not read does not notice that the visitor has left.
 * @param socket is paused. @param first bytes that were read already.
 * @returns a function that pauses the socket again, and returns all bytes.
 */
export function readEarlyBytes(socket: Socket, first: Uint8Array): () => Uint8Array {
  const chunks = [first];
  let length = first.length;
  setReceiver(socket, (bytes) => {
    chunks.push(Buffer.from(bytes));
    length += bytes.length;
    return length < EARLY_MAX_BYTES;
  });
  if (length < EARLY_MAX_BYTES) socket.resume();
  return () => {
    socket.pause();
    return Buffer.concat(chunks);
  };
}
