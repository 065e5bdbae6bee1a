/**
 * The part of PostgreSQL's protocol that the gateway needs: message boundaries, and the few messages that it sends
 * itself. A message is type u8 | length u32, including itself | payload. A startup message has no type.
 */

/** Limit of each message that a client sends before it is authenticated. */
const GATEWAY_STARTUP_MAX_BYTES = 16 * 1024;

const HEADER_BYTES = 5;

export const MESSAGE_TYPE = {
  query: 0x51, // Q
  sync: 0x53, // S
  functionCall: 0x46, // F
  password: 0x70, // p
  terminate: 0x58, // X
  readyForQuery: 0x5a, // Z
} as const;

/** The codes of errors that the gateway sends itself (PostgreSQL's documentation, appendix A). */
export const SQLSTATE = {
  connectionFailure: "08006",
  protocolViolation: "08P01",
  wrongPassword: "28P01",
  tooManyConnections: "53300",
} as const;

/** Finds the start of each message in a stream whose chunks can begin and end anywhere. */
export class MessageScanner {
  #header = Buffer.alloc(HEADER_BYTES);
  /** Bytes of the current message's header so far. */
  #headerBytes = 0;
  /** Bytes of the current message's payload that are still to come. */
  #payloadBytesLeft = 0;

  /** @param onMessage `start` is the message's offset in this chunk; negative when its header began in an earlier one. */
  scan(chunk: Buffer, onMessage: (type: number, start: number) => void): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#payloadBytesLeft > 0) {
        const taken = Math.min(this.#payloadBytesLeft, chunk.length - at);
        this.#payloadBytesLeft -= taken;
        at += taken;
        continue;
      }
      const taken = Math.min(HEADER_BYTES - this.#headerBytes, chunk.length - at);
      chunk.copy(this.#header, this.#headerBytes, at, at + taken);
      this.#headerBytes += taken;
      at += taken;
      if (this.#headerBytes < HEADER_BYTES) return;
      this.#headerBytes = 0;
      this.#payloadBytesLeft = Math.max(0, this.#header.readUInt32BE(1) - 4);
      onMessage(this.#header.readUInt8(0), at - HEADER_BYTES);
    }
  }

  /** True between two messages. */
  get isAtBoundary(): boolean {
    return this.#headerBytes === 0 && this.#payloadBytesLeft === 0;
  }
}

const SSL_REQUEST = 80_877_103;
const GSS_REQUEST = 80_877_104;
const PROTOCOL_MAJOR = 3;

type Startup =
  | { kind: "incomplete" }
  | { kind: "unreadable" }
  /** The client asks for encryption: a single byte declines it, and the client continues without. */
  | { kind: "encryption"; bytes: number }
  | { kind: "startup"; bytes: number; parameters: Map<string, string> };

export function readStartup(buffer: Buffer): Startup {
  if (buffer.length < 8) return { kind: "incomplete" };
  const bytes = buffer.readUInt32BE(0);
  const code = buffer.readUInt32BE(4);
  if (bytes < 8 || bytes > GATEWAY_STARTUP_MAX_BYTES) return { kind: "unreadable" };
  if (code === SSL_REQUEST || code === GSS_REQUEST) return { kind: "encryption", bytes: 8 };
  if (code >>> 16 !== PROTOCOL_MAJOR) return { kind: "unreadable" };
  if (buffer.length < bytes) return { kind: "incomplete" };
  // Names and values alternate. Each ends with a zero byte, and one more ends the list.
  const texts = buffer.toString("utf8", 8, bytes).split("\0");
  const parameters = new Map<string, string>();
  for (let at = 0; at + 1 < texts.length && texts[at] !== ""; at += 2) {
    parameters.set(texts[at]!, texts[at + 1]!);
  }
  return { kind: "startup", bytes, parameters };
}

/** @returns undefined when more bytes are needed, null when the message is not a password. */
export function readPassword(
  buffer: Buffer,
): { password: string; bytes: number } | undefined | null {
  if (buffer.length < HEADER_BYTES) return undefined;
  const length = buffer.readUInt32BE(1);
  if (
    buffer.readUInt8(0) !== MESSAGE_TYPE.password ||
    length < 5 ||
    length > GATEWAY_STARTUP_MAX_BYTES
  ) {
    return null;
  }
  if (buffer.length < length + 1) return undefined;
  const password = buffer.toString("utf8", HEADER_BYTES, length);
  return { password, bytes: length + 1 };
}

export const ENCRYPTION_DECLINED = Buffer.from("N");
export const PASSWORD_REQUEST = buildMessage("R", encodeU32(3));

/** The messages that follow a successful authentication. */
export function buildAuthenticationOk(parameters: ReadonlyMap<string, string>): Buffer {
  return Buffer.concat([
    buildMessage("R", encodeU32(0)),
    ...[...parameters].map(([name, value]) =>
      buildMessage("S", encodeText(name), encodeText(value)),
    ),
    // No valid key for cancellation requests, because the connection is shared.
    buildMessage("K", encodeU32(0), encodeU32(0)),
    buildMessage("Z", Buffer.from("I")),
  ]);
}

export function buildFatalError(code: string, reason: string): Buffer {
  const fields = { S: "FATAL", V: "FATAL", C: code, M: reason };
  return buildMessage(
    "E",
    ...Object.entries(fields).map(([name, value]) =>
      Buffer.concat([Buffer.from(name), encodeText(value)]),
    ),
    Buffer.from([0]),
  );
}

function buildMessage(type: string, ...parts: Buffer[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 4);
  return Buffer.concat([Buffer.from(type), encodeU32(length), ...parts]);
}

function encodeU32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32BE(value);
  return buffer;
}

function encodeText(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}
