/** Echo requests (RFC 792) in IPv4 packets, for peers that accept only IP packets. */
const IPV4_HEADER_BYTES = 20;
const ICMP_HEADER_BYTES = 8;
const PROTOCOL_ICMP = 1;
const ECHO = { reply: 0, request: 8 } as const;

export function writeEchoRequest(from: string, to: string, sequence: number, text: string): Buffer {
  const icmp = Buffer.concat([Buffer.alloc(ICMP_HEADER_BYTES), Buffer.from(text)]);
  icmp[0] = ECHO.request;
  icmp.writeUInt16BE(sequence, 6);
  icmp.writeUInt16BE(checksum(icmp), 2);
  const header = Buffer.alloc(IPV4_HEADER_BYTES);
  header[0] = 0x45;
  header.writeUInt16BE(IPV4_HEADER_BYTES + icmp.byteLength, 2);
  header[8] = 64;
  header[9] = PROTOCOL_ICMP;
  header.set(from.split(".").map(Number), 12);
  header.set(to.split(".").map(Number), 16);
  header.writeUInt16BE(checksum(header), 10);
  return Buffer.concat([header, icmp]);
}

/** @returns null for a packet that is not an echo reply. */
export function readEchoReply(packet: Buffer): { sequence: number; text: string } | null {
  if (packet[9] !== PROTOCOL_ICMP || packet[IPV4_HEADER_BYTES] !== ECHO.reply) return null;
  // WireGuard pads packets: the length field says where the packet ends.
  const icmp = packet.subarray(IPV4_HEADER_BYTES, packet.readUInt16BE(2));
  return {
    sequence: icmp.readUInt16BE(6),
    text: icmp.subarray(ICMP_HEADER_BYTES).toString(),
  };
}

/** RFC 1071. */
function checksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at + 1 < bytes.byteLength; at += 2) sum += bytes.readUInt16BE(at);
  if (bytes.byteLength % 2 === 1) sum += bytes.at(-1)! << 8;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
