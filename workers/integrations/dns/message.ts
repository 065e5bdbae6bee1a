/**
 * A DNS query for TXT records and its response, in the wire format of RFC 1035 §4. The owner of the domain controls the
 * contents of the response, so every length and pointer in it is checked.
 */

/** The EDNS payload size that we announce to the resolver. */
const DNS_MESSAGE_MAX_BYTES = 4_096;

const TYPE = { cname: 5, txt: 16, opt: 41 } as const;
const CLASS_IN = 1;
const RCODE = { ok: 0, noSuchName: 3 } as const;
const FLAG = { response: 0x8000, truncated: 0x0200, recurse: 0x0100 } as const;
const LABEL_MAX_BYTES = 63;
/** Without the root's length byte. */
const NAME_MAX_BYTES = 254;

/** @param name at most 253 characters, in lower-case labels of at most 63. */
export function encodeTxtQuery(name: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([
    // The id is 0, as RFC 8484 §4.1 requires: HTTP already matches the response to the query.
    ...[0, FLAG.recurse, 1, 0, 0, 1].flatMap(toUint16Bytes),
    ...name.split(".").flatMap((label) => [label.length, ...toCharCodes(label)]),
    ...[0, ...toUint16Bytes(TYPE.txt), ...toUint16Bytes(CLASS_IN)],
    // EDNS (RFC 6891): without it, some resolvers truncate their responses at 512 bytes.
    ...[0, ...toUint16Bytes(TYPE.opt), ...toUint16Bytes(DNS_MESSAGE_MAX_BYTES), 0, 0, 0, 0, 0, 0],
  ]);
}

/** `texts`: one for each record, with its strings joined. */
type TxtResponse = { texts: string[] } | { failure: string };

export function parseTxtResponse(message: Uint8Array, name: string): TxtResponse {
  try {
    return parseResponse(new Reader(message), name);
  } catch (error) {
    if (error instanceof MalformedMessageError) return { failure: "the response is malformed" };
    throw error;
  }
}

class MalformedMessageError extends Error {
  override name = "MalformedMessageError";
}

function parseResponse(reader: Reader, name: string): TxtResponse {
  const [id, flags, questions, answers] = [0, 0, 0, 0].map(() => reader.uint16()) as Header;
  reader.skipTo(HEADER_BYTES);
  if (id !== 0 || (flags & FLAG.response) === 0 || questions !== 1)
    throw new MalformedMessageError();
  const isOurs =
    reader.name() === name && reader.uint16() === TYPE.txt && reader.uint16() === CLASS_IN;
  if (!isOurs) return { failure: "the response is to another question" };
  const rcode = flags & 0x000f;
  if (rcode !== RCODE.ok && rcode !== RCODE.noSuchName) return { failure: `RCODE ${rcode}` };
  if ((flags & FLAG.truncated) !== 0) return { failure: "the response was truncated" };

  const texts = new Map<string, string[]>();
  const aliases = new Map<string, string>();
  for (let left = answers; left > 0; left--) {
    const record = readRecord(reader);
    if (record.text !== undefined) {
      const before = texts.get(record.owner);
      if (before) before.push(record.text);
      else texts.set(record.owner, [record.text]);
    } else if (record.alias !== undefined) {
      aliases.set(record.owner, record.alias);
    }
  }
  return { texts: texts.get(followAliases(aliases, name)) ?? [] };
}

type Header = [id: number, flags: number, questions: number, answers: number];
const HEADER_BYTES = 12;

function readRecord(reader: Reader): { owner: string; text?: string; alias?: string } {
  const owner = reader.name();
  const type = reader.uint16();
  const isInternet = reader.uint16() === CLASS_IN;
  reader.take(TTL_BYTES);
  const length = reader.uint16();
  const end = reader.at + length;
  if (isInternet && type === TYPE.txt) return { owner, text: readText(reader.take(length)) };
  const alias = isInternet && type === TYPE.cname ? reader.name() : undefined;
  reader.skipTo(end);
  return alias === undefined ? { owner } : { owner, alias };
}

const TTL_BYTES = 4;

function readText(data: Uint8Array): string {
  const reader = new Reader(data);
  const decoder = new TextDecoder();
  let text = "";
  while (reader.at < data.length) {
    text += decoder.decode(reader.take(reader.uint8()), { stream: true });
  }
  return text + decoder.decode();
}

/** Follows each alias once, so that a cycle ends. */
function followAliases(aliases: Map<string, string>, name: string): string {
  let last = name;
  for (let next = aliases.get(last); next !== undefined; next = aliases.get(last)) {
    aliases.delete(last);
    last = next;
  }
  return last;
}

class Reader {
  at = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  uint8(): number {
    return this.#byteAt(this.at++);
  }

  uint16(): number {
    return this.uint8() * 256 + this.uint8();
  }

  take(length: number): Uint8Array {
    const start = this.at;
    this.skipTo(start + length);
    return this.#bytes.subarray(start, this.at);
  }

  skipTo(at: number): void {
    if (at < this.at || at > this.#bytes.length) throw new MalformedMessageError();
    this.at = at;
  }

  /** In lower case. A pointer must lead to an earlier position than its own, so that no chain is endless. */
  name(): string {
    const labels: string[] = [];
    let bytes = 0;
    let at = this.at;
    let before = at;
    let end: number | undefined;
    for (;;) {
      const size = this.#byteAt(at);
      if (size === 0) break;
      if (size >= POINTER) {
        const target = (size - POINTER) * 256 + this.#byteAt(at + 1);
        end ??= at + 2;
        if (target >= before) throw new MalformedMessageError();
        at = before = target;
        continue;
      }
      bytes += size + 1;
      const label = this.#bytes.subarray(at + 1, at + 1 + size);
      if (size > LABEL_MAX_BYTES || bytes > NAME_MAX_BYTES || label.length < size) {
        throw new MalformedMessageError();
      }
      // Escaped, so that a dot inside a label differs from the dot between two labels.
      labels.push(String.fromCharCode(...label).replaceAll(".", "\\."));
      at += size + 1;
    }
    this.at = end ?? at + 1;
    return labels.join(".").toLowerCase();
  }

  #byteAt(at: number): number {
    const byte = this.#bytes[at];
    if (byte === undefined) throw new MalformedMessageError();
    return byte;
  }
}

const POINTER = 0xc0;

function toUint16Bytes(uint16: number): [number, number] {
  return [uint16 >> 8, uint16 & 0xff];
}

function toCharCodes(label: string): number[] {
  return Array.from(label, (char) => char.charCodeAt(0));
}
