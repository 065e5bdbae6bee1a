/**
 * Sends the same request twice, directly to a local server and through its tunnel. The request that the server receives and
 * the response that the client receives must be the same, except for what a proxy has to change.
 */
import { createHash } from "node:crypto";
import { OK, type RawOrigin, type Respond } from "./origin.ts";
import { exchange, findHeader } from "./raw-http.ts";

/** RFC 9110 §7.6.1: they describe the connection, not the message. */
const HOP_BY_HOP = ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];
/** The visitor's address, which the tunnel adds. */
const ADDED = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"];
/** Names the request in the inspector and in the log. */
const ADDED_TO_ANSWER = ["underpass-request-id"];

interface Observation {
  /** null: nothing reached the local server. */
  seen: { method: string; target: string; headers: Record<string, string>; body: string } | null;
  answer: { status: number; headers: Record<string, string>; cookies: string[]; body: string };
}

export interface Comparison {
  direct: Observation;
  tunnelled: Observation;
}

export interface Row {
  method?: string;
  target?: string;
  /** Header lines besides Host, sent as they are. */
  lines?: string[];
  body?: Buffer | string;
  /** The local server's response. */
  respond?: Respond;
}

/** The bytes of a request, each character of its head one byte. */
function buildRequest(host: string, row: Row): Buffer {
  const { method = "GET", target = "/", lines = [], body = "" } = row;
  const head = [`${method} ${target} HTTP/1.1`, `Host: ${host}`, ...lines, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(body)]);
}

export async function compare(
  row: Row,
  through: { origin: RawOrigin; port: number; host: string },
): Promise<Comparison> {
  const { origin, port, host } = through;
  const request = buildRequest(host, row);
  const observe = async (to: number): Promise<Observation> => {
    origin.requests.length = 0;
    origin.respond = row.respond ?? (() => OK);
    const answer = await exchange(to, request);
    const [received, again] = origin.requests;
    if (again) throw new Error("the local server received the request twice");
    const isMeasured = /chunked/i.test(findHeader(answer.headers, "transfer-encoding") ?? "");
    return {
      seen: received
        ? {
            method: received.method,
            target: received.target,
            headers: normalize(received.headers, ADDED),
            body: summarize(received.body),
          }
        : null,
      answer: {
        status: answer.status,
        headers: normalize(answer.headers, [
          ...ADDED_TO_ANSWER,
          ...(isMeasured ? ["content-length"] : []),
        ]),
        cookies: answer.headers
          .filter(([name]) => name.toLowerCase() === "set-cookie")
          .map(([, value]) => value),
        body: summarize(answer.body),
      },
    };
  };
  return { direct: await observe(origin.port), tunnelled: await observe(port) };
}

/** Short bodies as text, long ones as length and hash. */
function summarize(body: Buffer): string {
  if (body.length <= 1_000) return body.toString("latin1");
  return `${body.length} bytes: ${createHash("sha256").update(body).digest("hex")}`;
}

/** Names in lower case and repeated ones joined, as RFC 9110 §5.3 lets every hop do. */
function normalize(headers: [string, string][], without: string[]): Record<string, string> {
  const normalized: Record<string, string> = {};
  for (const [mixed, value] of headers) {
    const name = mixed.toLowerCase();
    if (HOP_BY_HOP.includes(name) || without.includes(name) || name === "set-cookie") continue;
    normalized[name] = name in normalized ? `${normalized[name]}, ${value}` : value;
  }
  return normalized;
}
