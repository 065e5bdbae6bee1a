/**
 * Lets a server answer a request before it has read the whole body, and close the connection. From then on writes
 * fail, but the response may be in the socket's buffer, or on its way. Node.js destroys a socket at the first failed
 * write, and the response with it. So the failure is held back until the response was read.
 */
import type { Socket } from "node:net";

/** How long the rest of the response may take to arrive after a write has failed. */
const RESPONSE_AFTER_FAILURE_MS = 1_000;

type WriteCallback = (error?: Error | null) => void;

/**
 * @param socket a connection that nothing was written to.
 * @param reportAfterMs how long the rest of the response may take to arrive after a write has failed; Infinity when the end
 * of what the server has sent always follows.
 */
export function readAfterFailedWrites(
  socket: Socket,
  reportAfterMs = RESPONSE_AFTER_FAILURE_MS,
): void {
  const holdBack =
    (callback: WriteCallback): WriteCallback =>
    (error) => {
      if (!error || !isClosedByPeer(error)) callback(error);
      else if (reportAfterMs < Infinity)
        reportAfterResponse(socket, reportAfterMs, () => callback(error));
    };
  // Methods that Node.js documents for implementers of streams; the socket calls them for each write.
  const write = socket._write.bind(socket);
  const writev = socket._writev?.bind(socket);
  socket._write = (chunk, encoding, callback) => write(chunk, encoding, holdBack(callback));
  if (writev) socket._writev = (chunks, callback) => writev(chunks, holdBack(callback));
}

/**
 * While the failure is held back, further writes wait in the socket's buffer, which its user fills no further. The end of
 * the response ends the connection, and then nothing needs to be reported.
 */
function reportAfterResponse(socket: Socket, afterMs: number, report: () => void): void {
  let readBytes = socket.bytesRead;
  const timer = setInterval(() => {
    // A response that waits to be read by a slow visitor is not late.
    const isArriving = socket.bytesRead > readBytes || socket.readableLength > 0;
    readBytes = socket.bytesRead;
    if (isArriving) return;
    clearInterval(timer);
    report();
  }, afterMs);
  socket.once("close", () => clearInterval(timer));
}

function isClosedByPeer({ code }: NodeJS.ErrnoException): boolean {
  return code === "EPIPE" || code === "ECONNRESET";
}
