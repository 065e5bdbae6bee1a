/**
 * The PROXY protocol (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt): a header before a connection's
 * first byte, which gives the local server the visitor's address.
 */
import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import type { VisitorHead } from "../../protocol/relay/control.ts";

export const PROXY_PROTOCOLS = ["v1", "v2"] as const;
export type ProxyProtocol = (typeof PROXY_PROTOCOLS)[number];

/** §2.2: twelve bytes that no other protocol starts with. */
const SIGNATURE = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const VERSION_2 = 0x20;
const COMMAND = { local: 0x0, proxy: 0x1 } as const;
/** Address family in the upper four bits, SOCK_STREAM in the lower. */
const TCP_OVER = { unspecified: 0x00, ipv4: 0x11, ipv6: 0x21 } as const;

interface Endpoints {
  family: "ipv4" | "ipv6";
  source: string;
  destination: string;
}

/** The header of a connection that comes from `head.address` and reached `head.localAddress`. */
export function encodeProxyHeader(version: ProxyProtocol, head: VisitorHead): Buffer {
  const endpoints = findEndpoints(head);
  return version === "v1" ? encodeVersion1(head, endpoints) : encodeVersion2(head, endpoints);
}

/** §2.1: one line of text. */
function encodeVersion1(head: VisitorHead, endpoints: Endpoints | null): Buffer {
  if (!endpoints) return Buffer.from("PROXY UNKNOWN\r\n");
  const { family, source, destination } = endpoints;
  const protocol = family === "ipv4" ? "TCP4" : "TCP6";
  return Buffer.from(
    `PROXY ${protocol} ${source} ${destination} ${head.port} ${head.localPort}\r\n`,
  );
}

/** §2.2: signature, version and command, family, length of the rest, addresses, ports. */
function encodeVersion2(head: VisitorHead, endpoints: Endpoints | null): Buffer {
  const fixed = Buffer.alloc(4);
  fixed.writeUInt8(VERSION_2 | (endpoints ? COMMAND.proxy : COMMAND.local), 0);
  if (!endpoints) {
    fixed.writeUInt8(TCP_OVER.unspecified, 1);
    return Buffer.concat([SIGNATURE, fixed]);
  }
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(head.port, 0);
  ports.writeUInt16BE(head.localPort, 2);
  const { family, source, destination } = endpoints;
  const rest = Buffer.concat([toBytes(source), toBytes(destination), ports]);
  fixed.writeUInt8(TCP_OVER[family], 1);
  fixed.writeUInt16BE(rest.length, 2);
  return Buffer.concat([SIGNATURE, fixed, rest]);
}

/**
 * Both addresses in one family, as the header requires. The destination is unspecified when it is not known: a client of
 * `underpass connect` uses no public port.
 * @returns null when the visitor's address is not known.
 */
function findEndpoints({ address, localAddress }: VisitorHead): Endpoints | null {
  if (isIPv4(address)) {
    return {
      family: "ipv4",
      source: address,
      destination: isIPv4(localAddress) ? localAddress : "0.0.0.0",
    };
  }
  if (!isIPv6(address)) return null;
  return {
    family: "ipv6",
    source: stripZone(address),
    destination: isIPv6(localAddress) ? stripZone(localAddress) : "::",
  };
}

function stripZone(address: string): string {
  return address.split("%")[0]!;
}

function toBytes(address: string): Buffer {
  return Buffer.from(ipaddr.parse(address).toByteArray());
}
