/**
 * Reads the head of an HTTP/1.1 request (RFC 9112), and refuses everything that two programs could read in different
 * ways: where they disagree about the end of a request, a visitor can smuggle a second one past the first program.
 */
import { parseHost } from "../../../protocol/hosts.ts";
import { CF_BLOB_HEADER } from "../../../shared/client-address.ts";
import type { BodyLength } from "./message-body.ts";

/** The size of one head, request line included. workerd has about the same limit. */
export const HEAD_MAX_BYTES = 128 * 1024;
/** workerd stores hundreds of bytes for each field, however short it is. */
export const HEAD_MAX_FIELDS = 256;
/** workerd splits the query at each `&`, several times for a request: 100,000 of them take it 20 ms. */
export const QUERY_MAX_PARAMETERS = 4_096;

export interface RequestHead {
  /** The head as it is forwarded. */
  bytes: Buffer;
  method: string;
  /** Begins with a slash. */
  target: string;
  /** The host that the request is for, without its port and in lower case. */
  host: string;
  /** The length of the body that follows. */
  body: BodyLength;
  /** Whether the visitor may wait with the body until it is invited. */
  expectsContinue: boolean;
  /** Whether the visitor asks for another protocol, such as WebSocket. */
  isUpgrade: boolean;
  /** Whether the request may be sent again if the connection is lost before an answer. */
  canRepeat: boolean;
  /** Whether the connection is closed after the answer (RFC 9112 §9.3, without persistent connections of HTTP/1.0). */
  isLast: boolean;
}

export type InvalidHead =
  | "malformed"
  | "too_many_fields"
  | "too_many_parameters"
  | "invalid_host"
  | "unsupported_encoding"
  | "connect"
  | "unknown_method"
  | "invalid_handshake"
  | "unsupported_websocket_version";

const LINE_BREAK = "\r\n";
const HEAD =
  // Method, target and version; then fields of visible characters, spaces and tabs. No line starts with a space.
  /^([!#$%&'*+.^_`|~\w-]+) ([!-~\x80-\xff]+) HTTP\/1\.([01])\r\n(?:[!#$%&'*+.^_`|~\w-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/;
const FRAMING_FIELDS = new RegExp(
  "\\r\\n(content-length|transfer-encoding|connection|upgrade|expect|host|sec-websocket-version|sec-websocket-key|" +
    `${CF_BLOB_HEADER}):[\\t ]*([^\\r]*)`,
  "gi",
);
/** The form for proxies, which every server must accept, with the host that counts (RFC 9112 §3.2.2). */
const ABSOLUTE_TARGET = /^https?:\/\/([^/?]*)(.*)$/i;
const HOST_FIELD = /\r\nhost:[^\r]*/gi;
const CF_BLOB_FIELD = new RegExp(`\\r\\n${CF_BLOB_HEADER}:[^\\r]*`, "gi");
const UPGRADE_OPTION = /(^|[\s,])upgrade\s*(,|$)/i;
const CLOSE_OPTION = /(^|[\s,])close\s*(,|$)/i;
const CONTENT_LENGTH = /^\d{1,15}$/;
const UPGRADE_FIELD = /\r\nupgrade:[^\r]*/gi;
const CONTENT_LENGTH_FIELD = /\r\ncontent-length:[^\r]*/gi;
/** The only version of the WebSocket protocol (RFC 6455 §4.1). */
export const WEBSOCKET_VERSION = "13";
/** 16 bytes in base64 (RFC 6455 §4.2.1). */
const WEBSOCKET_KEY = /^[A-Za-z0-9+/]{22}==$/;
const HANDSHAKE_FIELD_END = /(\r\nsec-websocket-(?:version|key):[\t ]*\S+)[\t ]+(?=\r)/gi;
const REPEATABLE = new Set(["GET", "HEAD", "OPTIONS"]);
/** Those of workerd, which answers others with a line of text of its own. Names of methods are case-sensitive (RFC 9110 §9.1). */
const METHODS = new Set(
  (
    "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE QUERY PURGE BAN COPY MOVE LOCK UNLOCK MKCOL PROPFIND PROPPATCH " +
    "SEARCH MSEARCH REPORT ACL MERGE CHECKOUT MKACTIVITY NOTIFY SUBSCRIBE UNSUBSCRIBE"
  ).split(" "),
);

/**
 * @param text a head up to and including its empty line, one character for each byte.
 * @param cfBlobField the line that is added, with its line break.
 */
export function parseRequestHead(text: string, cfBlobField: string): RequestHead | InvalidHead {
  if (hasTooManyFields(text)) return "too_many_fields";
  const match = HEAD.exec(text);
  if (!match) return "malformed";
  const fields = readFramingFields(text);
  if (fields === undefined) return "malformed";
  const { transferEncoding, connection, upgrade } = fields;
  const isVersion11 = match[3] === "1";
  if (fields.host.length > 1 || (fields.host.length === 0 && isVersion11)) return "invalid_host";
  const { authority, target } = splitTarget(match[2]!);
  if (hasTooManyParameters(target)) return "too_many_parameters";
  // workerd answers such a host with 500, and a request of HTTP/1.0 without a host with a line of text of its own.
  const host = parseHost(authority ?? fields.host[0] ?? "");
  if (host === null) return "invalid_host";
  const method = match[1]!;
  const asksForUpgrade =
    method === "GET" && isVersion11 && upgrade !== "" && UPGRADE_OPTION.test(connection);
  const isWebSocket = asksForUpgrade && upgrade.toLowerCase() === "websocket";
  const body = readBodyLength(fields.contentLength, transferEncoding, isVersion11);
  if (typeof body === "string" && body !== "chunked") return body;
  // A handshake has no body (RFC 6455 §4.1). The operator's proxy would forward one unchanged, and what is read here as
  // the next request would have forwarding headers that the visitor chose.
  if (isWebSocket && body !== 0 && body !== "chunked") return "malformed";

  // What follows a CONNECT is not HTTP.
  if (method === "CONNECT") return "connect";
  if (!METHODS.has(method)) return "unknown_method";
  const isUpgrade = asksForUpgrade && body === 0;
  const handshakeError = isWebSocket && isUpgrade ? checkHandshake(fields) : undefined;
  if (handshakeError !== undefined) return handshakeError;
  // `*` is for the server as a whole (RFC 9112 §3.2.4). workerd answers it with 500 and lines in the log.
  if (!target.startsWith("/")) return "malformed";
  let rest = text.slice(text.indexOf(LINE_BREAK));
  if (fields.hasCfBlobField) rest = rest.replaceAll(CF_BLOB_FIELD, "");
  // workerd opens a WebSocket for this field alone, and would read as frames what is a body here, so that nothing would bound them.
  if (upgrade !== "" && !isUpgrade) rest = rest.replaceAll(UPGRADE_FIELD, "");
  if (isWebSocket) {
    rest = rest.replaceAll(CONTENT_LENGTH_FIELD, "");
    // workerd would read the spaces as a part of the value.
    rest = rest.replaceAll(HANDSHAKE_FIELD_END, "$1");
  }
  if (authority !== undefined) rest = `\r\nHost: ${authority}${rest.replaceAll(HOST_FIELD, "")}`;
  const firstLine = `${method} ${target} HTTP/1.${match[3]}\r\n`;
  return {
    bytes: Buffer.from(firstLine + cfBlobField + rest.slice(2), "latin1"),
    method,
    target,
    host,
    body,
    expectsContinue: fields.expect.toLowerCase() === "100-continue" && isVersion11,
    isUpgrade,
    canRepeat: body === 0 && REPEATABLE.has(method),
    isLast: !isVersion11 || CLOSE_OPTION.test(connection),
  };
}

/** workerd checks it only when the local server has accepted the WebSocket, and answers with a line of text of its own. */
function checkHandshake({
  webSocketVersions,
  webSocketKeys,
}: FramingFields): InvalidHead | undefined {
  const [version, ...otherVersions] = webSocketVersions;
  const [key, ...otherKeys] = webSocketKeys;
  if (version === undefined || otherVersions.length > 0) return "invalid_handshake";
  if (version !== WEBSOCKET_VERSION) return "unsupported_websocket_version";
  const isKeyValid = key !== undefined && WEBSOCKET_KEY.test(key) && otherKeys.length === 0;
  return isKeyValid ? undefined : "invalid_handshake";
}

function hasTooManyFields(text: string): boolean {
  // Besides the fields, the first line and the empty one end with a line break.
  let left = HEAD_MAX_FIELDS + 2;
  for (let at = text.indexOf(LINE_BREAK); at >= 0; at = text.indexOf(LINE_BREAK, at + 2)) {
    left -= 1;
    if (left < 0) return true;
  }
  return false;
}

function hasTooManyParameters(target: string): boolean {
  return target.length >= QUERY_MAX_PARAMETERS && target.split("&").length > QUERY_MAX_PARAMETERS;
}

/** The target as a path, and the host that an absolute one names. Its path may be empty (RFC 9110 §4.2.3). */
function splitTarget(text: string): { authority?: string; target: string } {
  const [, authority, rest] = ABSOLUTE_TARGET.exec(text) ?? [];
  if (authority === undefined || rest === undefined) return { target: text };
  return { authority, target: rest.startsWith("/") ? rest : `/${rest}` };
}

interface FramingFields {
  host: string[];
  contentLength: string | undefined;
  transferEncoding: string | undefined;
  connection: string;
  upgrade: string;
  expect: string;
  webSocketVersions: string[];
  webSocketKeys: string[];
  hasCfBlobField: boolean;
}

/** @returns undefined when a field that decides about the body occurs twice. */
function readFramingFields(text: string): FramingFields | undefined {
  const fields: FramingFields = {
    host: [],
    contentLength: undefined,
    transferEncoding: undefined,
    connection: "",
    upgrade: "",
    expect: "",
    webSocketVersions: [],
    webSocketKeys: [],
    hasCfBlobField: false,
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
        fields.upgrade += value;
        break;
      case "expect":
        fields.expect = value;
        break;
      case "sec-websocket-version":
        fields.webSocketVersions.push(value);
        break;
      case "sec-websocket-key":
        fields.webSocketKeys.push(value);
        break;
      default:
        fields.hasCfBlobField = true;
    }
  }
  return fields;
}

/** RFC 9112 §6.3, without its optional leniencies. */
function readBodyLength(
  contentLength: string | undefined,
  transferEncoding: string | undefined,
  isVersion11: boolean,
): BodyLength | InvalidHead {
  if (transferEncoding === undefined) {
    if (contentLength === undefined) return 0;
    return CONTENT_LENGTH.test(contentLength) ? Number(contentLength) : "malformed";
  }
  if (contentLength !== undefined || !isVersion11) return "malformed";
  return transferEncoding.toLowerCase() === "chunked" ? "chunked" : "unsupported_encoding";
}
