/**
 * A program that floods a UDP port with invalid datagrams: `flood.ts ADDRESS PORT PER_SECOND`. Half of them look like
 * handshake initiations, half like session data. Each second it prints how many it has sent.
 */
import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";

const [, , address = "", port = "0", perSecond = "0"] = process.argv;
const JUNK = Array.from({ length: 256 }, (_, n) => {
  const [type, length] = n % 2 === 0 ? [1, 148] : [4, 128];
  return Buffer.concat([Buffer.of(type, 0, 0, 0), randomBytes(length - 4)]);
});
const SOCKETS = Array.from({ length: 8 }, () => createSocket("udp4").on("error", () => undefined));
const startedAt = performance.now();
let sent = 0;
setInterval(() => {
  const due = ((performance.now() - startedAt) / 1000) * Number(perSecond);
  for (; sent < due; sent += 1)
    SOCKETS[sent % SOCKETS.length]!.send(JUNK[sent % JUNK.length]!, Number(port), address);
}, 1);
setInterval(() => console.log(JSON.stringify({ sent })), 1_000);
