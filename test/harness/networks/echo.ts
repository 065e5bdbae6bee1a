/**
 * A program for network namespaces: `echo.ts serve ADDRESS PORT` answers UDP datagrams with themselves;
 * `echo.ts ask ADDRESS PORT INTERVAL_MS` sends one each interval and prints a line of JSON for each answer,
 * `{"sequence", "ms"}`. Both run until they are stopped.
 */
import { createSocket } from "node:dgram";

const [, , mode, address = "", port = "0", intervalMs = "100"] = process.argv;
const socket = createSocket("udp4").on("error", () => undefined);
if (mode === "serve") {
  socket.on("message", (bytes, from) => socket.send(bytes, from.port, from.address));
  socket.bind(Number(port), address, () => console.log("{}"));
} else {
  let sequence = 0;
  socket.on("message", (bytes) => {
    const sentAt = bytes.readDoubleBE(4);
    console.log(
      JSON.stringify({ sequence: bytes.readUInt32BE(0), ms: performance.now() - sentAt }),
    );
  });
  setInterval(() => {
    const bytes = Buffer.alloc(64);
    bytes.writeUInt32BE((sequence += 1), 0);
    bytes.writeDoubleBE(performance.now(), 4);
    socket.send(bytes, Number(port), address);
  }, Number(intervalMs));
}
