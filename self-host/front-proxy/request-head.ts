/**
 * Reads the head of an HTTP/1.1 request (RFC 9112), and refuses everything that two programs could read in different
 * ways: where they disagree about the end of a request, a visitor can smuggle a second one past the first program.
 */
import { parseHost } from "../../protocol/hosts.ts";

/** The size of one head, request line included. workerd has about the same limit. */
export const HEAD_MAX_BYTES = 128 * 1024;

/**
 * The header that carries what workerd reports as `request.cf`: the address of the visitor. workerd takes it from every
 * request on its socket, so a visitor's own header of this name is removed.
 */
export const CONNECTION_HEADER = "underpass-connection";

export interface RequestHead {
  /** The head as it is forwarded. */
  bytes: Buffer;
  /** The length of the body that follows. */
  body: number | "chunked";
  /** Whether the visitor asks for another protocol, such as WebSocket. */
  isUpgrade: boolean;
  /** Whether the request may be sent again if the connection is lost before an answer. */
  canRepeat: boolean;
}

export type InvalidHead = "malformed" | "invalid_host" | "unsupported_encoding" | "connect";

const HEAD =
  // Method, target and version; then fields of visible characters, spaces and tabs. No line starts with a space.
  /^([!#$%&'*+.^_`|~\w-]+) [!-~\x80-\xff]+ HTTP\/1\.([01])\r\n(?:[!#$%&'*+.^_`|~\w-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/;
const FRAMING_FIELDS = new RegExp(
  `\\r\\n(content-length|transfer-encoding|connection|upgrade|host|${CONNECTION_HEADER}):[\\t ]*([^\\r]*)`,
  "gi",
);
const OWN_FIELD = new RegExp(`\\r\\n${CONNECTION_HEADER}:[^\\r]*`, "gi");
const CONTENT_LENGTH = /^\d{1,15}$/;
const REPEATABLE = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * @param text a head up to and including its empty line, one character for each byte.
 * @param ownField the line that is added, with its line break.
 */
export function parseRequestHead(text: string, ownField: string): RequestHead | InvalidHead {
  const match = HEAD.exec(text);
  if (!match) return "malformed";
  const fields = readFramingFields(text);
  if (fields === undefined) return "malformed";
  const { host, contentLength, transferEncoding, connection, upgrade } = fields;
  const isVersion11 = match[2] === "1";
  if (host.length > 1 || (host.length === 0 && isVersion11)) return "invalid_host";
  // workerd answers such a host with 500.
  if (host.length === 1 && parseHost(host[0]!) === null) return "invalid_host";
  const body = readBodyLength(contentLength, transferEncoding, isVersion11);
  if (typeof body === "string" && body !== "chunked") return body;

  const method = match[1]!;
  // What follows a CONNECT is not HTTP.
  if (method === "CONNECT") return "connect";
  const isUpgrade =
    body === 0 && method === "GET" && upgrade && /(^|[\s,])upgrade\s*(,|$)/i.test(connection);
  const firstLineEnd = text.indexOf("\r\n") + 2;
  const rest = text.slice(firstLineEnd);
  const cleanRest = fields.hasOwnField ? `\r\n${rest}`.replaceAll(OWN_FIELD, "").slice(2) : rest;
  return {
    bytes: Buffer.from(text.slice(0, firstLineEnd) + ownField + cleanRest, "latin1"),
    body,
    isUpgrade,
    canRepeat: body === 0 && REPEATABLE.has(method),
  };
}

interface FramingFields {
  host: string[];
  contentLength: string | undefined;
  transferEncoding: string | undefined;
  connection: string;
  upgrade: boolean;
  hasOwnField: boolean;
}

/** @returns undefined when a field that decides about the body occurs twice. */
function readFramingFields(text: string): FramingFields | undefined {
  const fields: FramingFields = {
    host: [],
    contentLength: undefined,
    transferEncoding: undefined,
    connection: "",
    upgrade: false,
    hasOwnField: false,
  };
  for (const [, name, rawValue] of text.matchAll(FRAMING_FIELDS)) {
    const value = rawValue!.trimEnd();
    switch (name!.toLowerCase()) {
      case "host":
        // With spaces at its end, with which workerd would not accept it.
        fields.host.push(rawValue!);
        break;
      case "content-length":
        if (fields.contentLength !== undefined) return undefined;
        fields.contentLength = value;
        break;
      case "transfer-encoding":
        if (fields.transferEncoding !== undefined) return undefined;
        fields.transferEncoding = value;
        break;
      case "connection":
        fields.connection += `${value},`;
        break;
      case "upgrade":
        fields.upgrade = true;
        break;
      default:
        fields.hasOwnField = true;
    }
  }
  return fields;
}

/** RFC 9112 §6.3, without its optional leniencies. */
function readBodyLength(
  contentLength: string | undefined,
  transferEncoding: string | undefined,
  isVersion11: boolean,
): number | "chunked" | InvalidHead {
  if (transferEncoding === undefined) {
    if (contentLength === undefined) return 0;
    return CONTENT_LENGTH.test(contentLength) ? Number(contentLength) : "malformed";
  }
  if (contentLength !== undefined || !isVersion11) return "malformed";
  return transferEncoding.toLowerCase() === "chunked" ? "chunked" : "unsupported_encoding";
}
