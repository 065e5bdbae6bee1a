/**
 * A captured request as a command for a shell. Whoever runs it did not write it: a visitor did. So nothing in
 * it may be anything but an argument, in any POSIX shell, and none of its characters may speak to the
 * terminal that it is pasted into.
 */
import { toBase64, fromBase64 } from "../../../shared/bytes.ts";
import { isForwarded, SOCKET_HANDSHAKE } from "../../../protocol/header-names.ts";
import type { CaptureEvent } from "../../../protocol/schemas/inspector/captures.ts";
import { decodeText } from "./bodies.ts";

/** Text in a command is more than a shell takes as one argument from here on: it goes through a pipe. */
export const CURL_ARGUMENT_MAX_BYTES = 64 * 1024;
/** Invisible characters in such a text: each is written as a command of its own. */
const CURL_ESCAPED_MAX = 200;

/** curl would read these as something of its own in a URL; then the target is said beside it. */
const PLAIN_TARGET = /^\/[\w.~!$&'()*+,;=:@/?%-]*$/;
const BODY_END = "UNDERPASS_BODY";
const LINE_CHARS = 76;

/** What curl says by itself unless it is told something else. */
const CURL_DEFAULT_HEADERS = ["accept", "user-agent"];

/** @param origin of the tunnel, without a slash at its end. */
export function formatCurlCommand(event: CaptureEvent, origin: string): string {
  const { method, path, query, kind } = event;
  const target = query === null ? path : `${path}?${query}`;
  const isPlain = PLAIN_TARGET.test(target);
  const body = fromBase64(event.request_body) ?? new Uint8Array();
  const isHead = method === "HEAD";
  const hasBody = !isHead && (body.length > 0 || event.request_headers["content-length"] === "0");
  const says = new Set(Object.keys(event.request_headers).map((name) => name.toLowerCase()));

  const args: string[][] = [["--globoff"], ["--path-as-is"]];
  if (isHead) args.push(["--head"]);
  else if (method !== (hasBody ? "POST" : "GET")) args.push(["--request", method]);
  if (!isPlain) args.push(["--request-target", target]);
  for (const [name, value] of Object.entries(event.request_headers)) {
    if (isVisitorHeader(name.toLowerCase()))
      args.push(["--header", value === "" ? `${name};` : `${name}: ${value}`]);
  }
  for (const name of hasBody ? [...CURL_DEFAULT_HEADERS, "content-type"] : CURL_DEFAULT_HEADERS) {
    if (!says.has(name)) args.push(["--header", `${name}:`]);
  }
  if (says.has("accept-encoding")) args.push(["--compressed"]);
  if (kind === "websocket") args.push(...buildHandshake());
  if (kind === "sse") args.push(["--no-buffer"]);

  const text = hasBody && body.length <= CURL_ARGUMENT_MAX_BYTES ? decodeReadableText(body) : null;
  if (hasBody) args.push(text === null ? ["--data-binary", "@-"] : ["--data-raw", text]);
  args.push(["--url", isPlain ? origin + target : `${origin}/`]);

  const words = args.map(([option, ...value]) => [option, ...value.map(quote)].join(" "));
  const command = ["curl", ...words].join(" \\\n  ");
  return `${hasBody && text === null ? pipeBody(body, command) : command}\n`;
}

/** What curl says itself, or what the tunnel says to the local server, is not the visitor's. */
function isVisitorHeader(name: string): boolean {
  const isToken = /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name);
  const isFraming = name === "host" || name === "content-length" || SOCKET_HANDSHAKE.has(name);
  return isToken && !isFraming && isForwarded(name);
}

/** The answer to it can be seen, its messages can't. */
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

/** @returns null for what nobody could read in a command: then it is piped in. */
function decodeReadableText(body: Uint8Array): string | null {
  const text = decodeText(body);
  const spelledOut = text?.match(INVISIBLE) ?? [];
  return spelledOut.length > CURL_ESCAPED_MAX ? null : text;
}

/** As one here-document, so that no line of it is too long for a terminal. */
function pipeBody(body: Uint8Array, command: string): string {
  const lines = toBase64(body).match(new RegExp(`.{1,${LINE_CHARS}}`, "g")) ?? [];
  const [first = "", ...rest] = command.split("\n");
  const reading = `base64 --decode <<'${BODY_END}' | ${first}`;
  return [reading, ...rest, ...lines, BODY_END].join("\n");
}

/**
 * A terminal acts on control characters, those of a pasted text too, and what turns the direction of writing
 * hides from a reader what a shell will do.
 */
const INVISIBLE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const INVISIBLE_RUN = /([\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+)/u;

/** One word of a POSIX shell. Invisible characters are written as what they are, a line's end as itself. */
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

/** The substitution drops line ends at its end: they stand in quotes of their own. */
function escapeInvisible(characters: string): string {
  const ofBytes = (text: string) =>
    [...new TextEncoder().encode(text)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`);
  return characters
    .split(/(\n+)/)
    .map((part) => {
      if (part === "") return "";
      return part.startsWith("\n") ? `'${part}'` : `"$(printf '${ofBytes(part).join("")}')"`;
    })
    .join("");
}
