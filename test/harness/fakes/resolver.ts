/** A DNS over HTTPS resolver (RFC 8484) with the records and errors that a test chooses. */
import { buffer } from "node:stream/consumers";
import type { IncomingMessage, ServerResponse } from "node:http";
import { buildLocalOrigin, startHttpServer } from "./http-server.ts";

export const TYPE = { A: 1, CNAME: 5, TXT: 16 } as const;
const MEDIA_TYPE = "application/dns-message";

export interface Question {
  id: number;
  name: string;
  type: number;
  /** The encoded question, to be echoed in the response. */
  bytes: Buffer;
}

export interface Resolver extends AsyncDisposable {
  url: string;
  questions: Question[];
  /** TXT records; `CNAME <name>` is an alias. A name that is missing does not exist. */
  records: Record<string, string[]>;
  /** While set, it handles all questions, for example with broken responses. */
  override: ((question: Question, response: ServerResponse) => void) | undefined;
  /** Closes all connections and stops listening. */
  stop(): Promise<void>;
  /** Listens on the same port again. */
  start(): Promise<void>;
}

/** Settings for a server that uses a resolver on this port. */
export function buildResolverSettings(port: number) {
  return { DNS_OVER_HTTPS_URL: `${buildLocalOrigin(port)}/dns-query` };
}

/** @param port 0: any free one. */
export async function startResolver(port = 0): Promise<Resolver> {
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const question = readQuestion(await buffer(request));
    resolver.questions.push(question);
    if (request.headers["content-type"] !== MEDIA_TYPE) return void response.writeHead(415).end();
    if (resolver.override) return resolver.override(question, response);
    send(response, buildAnswer(question, resolver.records));
  }
  const server = await startHttpServer((request, response) => void handle(request, response), port);
  const resolver: Resolver = {
    url: `${server.origin}/dns-query`,
    questions: [],
    records: {},
    override: undefined,
    stop: () => server.stop(),
    start: () => server.start(),
    [Symbol.asyncDispose]: () => server.stop(),
  };
  return resolver;
}

export function send(response: ServerResponse, bytes: Buffer): void {
  response.writeHead(200, { "content-type": MEDIA_TYPE }).end(bytes);
}

function buildAnswer(question: Question, records: Record<string, string[]>): Buffer {
  const lines: Buffer[] = [];
  let name = question.name;
  for (;;) {
    const values = records[name];
    if (!values) return message(question, { rcode: lines.length > 0 ? 0 : 3, records: lines });
    const [alias] = values.flatMap((value) => /^CNAME (.+)$/.exec(value)?.slice(1) ?? []);
    if (alias === undefined) {
      lines.push(...values.map((value) => encodeTxt(name, value.match(/.{1,255}/gs) ?? [""])));
      return message(question, { records: lines });
    }
    lines.push(encodeRecord(name, TYPE.CNAME, encodeName(alias)));
    name = alias;
  }
}

export interface MessageOptions {
  id?: number;
  rcode?: number;
  truncated?: boolean;
  isQuery?: boolean;
  question?: Buffer;
  records?: Buffer[];
  /** The number of records in the header, if it differs from the actual one. */
  count?: number;
}

/** A complete response. */
export function message(question: Question, shape: MessageOptions = {}): Buffer {
  const {
    id = question.id,
    rcode = 0,
    records = [],
    question: questionBytes = question.bytes,
  } = shape;
  const header = Buffer.alloc(12);
  header.writeUInt16BE(id, 0);
  const flags = (shape.isQuery ? 0 : 0x8180) | (shape.truncated ? 0x0200 : 0) | rcode;
  header.writeUInt16BE(flags, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(shape.count ?? records.length, 6);
  return Buffer.concat([header, questionBytes, ...records]);
}

/** @param strings the parts of the text, each of at most 255 bytes. */
export function encodeTxt(name: string, strings: string[]): Buffer {
  const pieces = strings.map((piece) => Buffer.concat([uint8(piece.length), Buffer.from(piece)]));
  return encodeRecord(name, TYPE.TXT, Buffer.concat(pieces));
}

/** A record of class IN with a TTL of 0. @param name as text, or as bytes that may contain pointers. */
export function encodeRecord(name: string | Buffer, type: number, data: Buffer): Buffer {
  const owner = typeof name === "string" ? encodeName(name) : name;
  const fixed = Buffer.concat([uint16(type), uint16(1), Buffer.alloc(4), uint16(data.length)]);
  return Buffer.concat([owner, fixed, data]);
}

export function encodeName(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.from(label, "latin1"));
  return Buffer.concat([
    ...labels.flatMap((label) => [uint8(label.length), label]),
    Buffer.from([0]),
  ]);
}

/** A compression pointer to the name in the question. */
export const POINTER_TO_QUESTION = Buffer.from([0xc0, 12]);

export function encodeQuestion(name: string, type: number = TYPE.TXT): Buffer {
  return Buffer.concat([encodeName(name), uint16(type), uint16(1)]);
}

function readQuestion(message: Buffer): Question {
  const labels: string[] = [];
  let at = 12;
  for (let size = message[at]!; size > 0; size = message[at]!) {
    labels.push(message.toString("latin1", at + 1, at + 1 + size));
    at += 1 + size;
  }
  const end = at + 5;
  return {
    id: message.readUInt16BE(0),
    name: labels.join("."),
    type: message.readUInt16BE(at + 1),
    bytes: message.subarray(12, end),
  };
}

function uint8(value: number): Buffer {
  return Buffer.from([value]);
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}
