/**
 * Finds where a response of workerd ends (RFC 9112 §6.3). The next request is forwarded only then: workerd serves no
 * other connection while it answers requests of one that have arrived, and ten thousand of them take it seconds.
 */
import { toBuffer } from "./buffers.ts";
import { createBodyReader, type BodyLength, type BodyReader } from "./message-body.ts";

export const HEAD_END = "\r\n\r\n";
/** `HTTP/1.1 `, before the three digits of the status. */
const STATUS_START = 9;
const STATUS_END = 12;
export const SWITCHING_PROTOCOLS = 101;
const NO_CONTENT = 204;
const NOT_MODIFIED = 304;
const UPGRADE_REQUIRED = 426;
const ENCODING_FIELD = /\r\ntransfer-encoding:/i;
const UPGRADE_REFUSAL = /\r\nunderpass-error: upgrade_expected\r\n/i;
const UPGRADE_FIELDS = "Connection: upgrade\r\nUpgrade: websocket\r\n";
const LENGTH_FIELD = /\r\ncontent-length:[\t ]*(\d+)/i;

export interface ResponseHead {
  status: number;
  /** Up to and including the empty line, one character for each byte. */
  text: string;
  /** Where the head ends within the bytes of its part. */
  end: number;
}

interface ResponsePart {
  /** The bytes to pass on to the visitor. */
  bytes: Uint8Array;
  /** If the head of the final response (RFC 9110 §15.2) ends within the bytes. */
  head?: ResponseHead;
}

export class ResponseReader {
  #isHeadRequest = false;
  /** The start of the response, while its head is incomplete. */
  #start: Buffer | undefined;
  /** Once the head is complete. */
  #body: BodyReader | undefined;

  get isComplete(): boolean {
    return this.#body?.isComplete ?? false;
  }

  /** The response to another request follows. @param method of the request. */
  expect(method: string): void {
    this.#isHeadRequest = method === "HEAD";
    this.#start = undefined;
    this.#body = undefined;
  }

  /** @param bytes from workerd. @returns undefined while a head is incomplete: its bytes are stored until it is complete. */
  read(bytes: Uint8Array): ResponsePart | undefined {
    if (this.#body) {
      this.#body.read(bytes);
      return { bytes };
    }
    const all = this.#start ? Buffer.concat([this.#start, bytes]) : toBuffer(bytes);
    let start = 0;
    while (start < all.length) {
      const end = all.indexOf(HEAD_END, start) + HEAD_END.length;
      if (end < HEAD_END.length) {
        this.#start = Buffer.from(all);
        return undefined;
      }
      const text = all.toString("latin1", start, end);
      const status = readStatus(text);
      if (status >= 200 || status === SWITCHING_PROTOCOLS) {
        this.#body = createBodyReader(findResponseLength(status, text, this.#isHeadRequest));
        this.#body.read(all.subarray(end));
        const head = { status, text, end };
        return status === UPGRADE_REQUIRED && UPGRADE_REFUSAL.test(text)
          ? addUpgradeFields(all, head)
          : { bytes: all, head };
      }
      start = end;
    }
    this.#start = undefined;
    return { bytes: all };
  }
}

/** A 426 must have the field `Upgrade` (RFC 9110 §15.5.22), which workerd drops. */
function addUpgradeFields(bytes: Buffer, { status, text, end }: ResponseHead): ResponsePart {
  const emptyLine = end - 2;
  return {
    bytes: Buffer.concat([
      bytes.subarray(0, emptyLine),
      Buffer.from(UPGRADE_FIELDS),
      bytes.subarray(emptyLine),
    ]),
    head: {
      status,
      text: `${text.slice(0, -2)}${UPGRADE_FIELDS}\r\n`,
      end: end + UPGRADE_FIELDS.length,
    },
  };
}

/** @param head the text of a response from its start. */
export function readStatus(head: string): number {
  return Number(head.slice(STATUS_START, STATUS_END));
}

/** @returns Infinity for a body that ends with the connection. */
export function findResponseLength(
  status: number,
  head: string,
  isHeadRequest: boolean,
): BodyLength {
  if (status === SWITCHING_PROTOCOLS) return Infinity;
  if (isHeadRequest || status === NO_CONTENT || status === NOT_MODIFIED) return 0;
  // workerd uses no other transfer coding. A length beside it does not count (RFC 9112 §6.3).
  if (ENCODING_FIELD.test(head)) return "chunked";
  return Number(LENGTH_FIELD.exec(head)?.[1] ?? Infinity);
}
