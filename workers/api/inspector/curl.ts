/**
 * Formats a captured request as a shell command. A visitor chose its contents, and another person runs it: so each
 * part must be nothing but an argument, in any POSIX shell, and none of its characters may control the terminal
 * that it is pasted into.
 */
import { toBase64, fromBase64 } from "../../../shared/bytes.ts";
import { isForwarded, WEBSOCKET_HANDSHAKE_HEADERS } from "../../../protocol/header-names.ts";
import { joinTarget } from "../../../protocol/request-target.ts";
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";
import { decodeText } from "./bodies.ts";

/** A larger text is too long for one argument of a shell, and is piped to curl. */
export const CURL_ARGUMENT_MAX_BYTES = 64 * 1024;
/** Invisible characters in such a text: each run of them becomes a command substitution. */
const CURL_ESCAPED_MAX = 200;

/** In a URL, curl interprets other characters; then the target is passed by an option. */
const PLAIN_TARGET = /^\/[\w.~!$&'()*+,;=:@/?%-]*$/;
const BODY_END = "UNDERPASS_BODY";
const LINE_CHARS = 76;

/** Headers that curl sends by default. */
const CURL_DEFAULT_HEADERS = ["accept", "user-agent"];

/** @param origin of the tunnel, without a trailing slash. */
export function formatCurlCommand(capture: CaptureDetail, origin: string): string {
  const { method, path, query, kind } = capture;
  const target = joinTarget(path, query);
  const isPlain = PLAIN_TARGET.test(target);
  const body = fromBase64(capture.request_body) ?? new Uint8Array();
  const isHead = method === "HEAD";
  const hasBody = !isHead && (body.length > 0 || capture.request_headers["content-length"] === "0");
  const names = new Set(Object.keys(capture.request_headers));

  const args: string[][] = [["--globoff"], ["--path-as-is"]];
  if (isHead) args.push(["--head"]);
  else if (method !== (hasBody ? "POST" : "GET")) args.push(["--request", method]);
  if (!isPlain) args.push(["--request-target", target]);
  for (const [name, value] of Object.entries(capture.request_headers)) {
    if (isVisitorHeader(name))
      args.push(["--header", value === "" ? `${name};` : `${name}: ${value}`]);
  }
  for (const name of hasBody ? [...CURL_DEFAULT_HEADERS, "content-type"] : CURL_DEFAULT_HEADERS) {
    if (!names.has(name)) args.push(["--header", `${name}:`]);
  }
  if (names.has("accept-encoding")) args.push(["--compressed"]);
  if (kind === "websocket") args.push(...buildHandshake());
  if (kind === "sse") args.push(["--no-buffer"]);

  const text = hasBody && body.length <= CURL_ARGUMENT_MAX_BYTES ? decodeReadableText(body) : null;
  if (hasBody) args.push(text === null ? ["--data-binary", "@-"] : ["--data-raw", text]);
  args.push(["--url", isPlain ? origin + target : `${origin}/`]);

  const words = args.map(([option, ...value]) => [option, ...value.map(quote)].join(" "));
  const command = ["curl", ...words].join(" \\\n  ");
  return `${hasBody && text === null ? pipeBody(body, command) : command}\n`;
}

/** False for headers that curl sends itself or that the tunnel adds for the local server. */
function isVisitorHeader(name: string): boolean {
  const isToken = /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name);
  const isFraming =
    name === "host" || name === "content-length" || WEBSOCKET_HANDSHAKE_HEADERS.has(name);
  return isToken && !isFraming && isForwarded(name);
}

/** curl shows the response to the handshake, not the messages. */
function buildHandshake(): string[][] {
  const key = toBase64(crypto.getRandomValues(new Uint8Array(16)));
  const lines = [
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    `sec-websocket-key: ${key}`,
  ];
  return [
    ["--http1.1"],
    ["--include"],
    ["--no-buffer"],
    ...lines.map((line) => ["--header", line]),
  ];
}

/** @returns null for a body that is unreadable in a command, which is piped instead. */
function decodeReadableText(body: Uint8Array): string | null {
  const text = decodeText(body);
  const invisible = text?.match(INVISIBLE) ?? [];
  return invisible.length > CURL_ESCAPED_MAX ? null : text;
}

/** As a here-document, so that no line is too long for a terminal. */
function pipeBody(body: Uint8Array, command: string): string {
  const lines = toBase64(body).match(new RegExp(`.{1,${LINE_CHARS}}`, "g")) ?? [];
  const [first = "", ...rest] = command.split("\n");
  const decoding = `base64 --decode <<'${BODY_END}' | ${first}`;
  return [decoding, ...rest, ...lines, BODY_END].join("\n");
}

/**
 * A terminal acts on control characters, even in pasted text, and characters that change the writing direction
 * hide from a reader what the shell will do.
 */
const INVISIBLE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const INVISIBLE_RUN = /([\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+)/u;

/** Quotes one word for a POSIX shell. Invisible characters are escaped, except for line feeds. */
function quote(word: string): string {
  const parts = word.toWellFormed().split(INVISIBLE_RUN);
  return parts
    .map((part, at) => (at % 2 === 0 ? singleQuote(part) : escapeInvisible(part)))
    .filter((part) => part !== "")
    .join("");
}

function singleQuote(text: string): string {
  return text === "" ? "" : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A command substitution drops trailing line feeds, so line feeds are quoted outside of it. */
function escapeInvisible(characters: string): string {
  const toOctal = (text: string) =>
    [...new TextEncoder().encode(text)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`);
  return characters
    .split(/(\n+)/)
    .map((part) => {
      if (part === "") return "";
      return part.startsWith("\n") ? `'${part}'` : `"$(printf '${toOctal(part).join("")}')"`;
    })
    .join("");
}
