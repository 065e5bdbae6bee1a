/**
 * A program for network namespaces: `syn-flood.ts ADDRESS PORT PER_SECOND SOURCE…` begins so many connections per
 * second, from the source addresses in turn, and destroys each shortly after. On a machine that drops the SYN-ACKs, none
 * is ever completed or reset. Each second it prints a line of JSON, `{"sent"}`, until it is stopped.
 */
import { connect, type Socket } from "node:net";

const [, , host = "", port = "0", perSecond = "0", ...sources] = process.argv;
const INTERVAL_MS = 10;
const batchSize = Math.ceil((Number(perSecond) * INTERVAL_MS) / 1_000);
let sent = 0;
let last: Socket[] = [];

setInterval(() => {
  // Their SYNs have been sent: Node.js connects a tick after `connect`.
  for (const socket of last) socket.destroy();
  last = Array.from({ length: batchSize }, () => {
    sent += 1;
    const localAddress = sources[sent % sources.length];
    return connect({ host, port: Number(port), localAddress }).on("error", () => undefined);
  });
}, INTERVAL_MS);
setInterval(() => console.log(JSON.stringify({ sent })), 1_000);
