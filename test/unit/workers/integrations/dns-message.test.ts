import { describe, expect, test } from "vitest";
import { parseTxtResponse, encodeTxtQuery } from "../../../../workers/integrations/dns/message.ts";
import {
  encodeName,
  message,
  POINTER_TO_QUESTION,
  encodeQuestion,
  encodeRecord,
  encodeTxt,
  TYPE,
  type Question,
} from "../../../harness/fakes/resolver.ts";

const NAME = "_svc-challenge.shop.example";
const ASKED: Question = { id: 0, name: NAME, type: TYPE.TXT, bytes: encodeQuestion(NAME) };

const read = (bytes: Uint8Array) => parseTxtResponse(bytes, NAME);
const readRecords = (...records: Buffer[]) => read(message(ASKED, { records }));

test("a query asks for TXT in the internet class, with EDNS and the id 0", () => {
  const bytes = Buffer.from(encodeTxtQuery("a.example"));
  expect(bytes.toString("hex")).toBe(
    "000001000001000000000001" + "0161076578616d706c6500" + "00100001" + "0000291000000000000000",
  );
});

describe("a response contains", () => {
  test("the text of every record, with its strings joined", () => {
    const long = ["x".repeat(255), "y".repeat(45)];
    expect(
      readRecords(encodeTxt(NAME, ["one"]), encodeTxt(NAME, long), encodeTxt(NAME, [""])),
    ).toEqual({
      texts: ["one", long.join(""), ""],
    });
  });

  test("texts of compressed names, and of names in upper case", () => {
    const pointed = encodeRecord(POINTER_TO_QUESTION, TYPE.TXT, Buffer.from("\x03one"));
    expect(readRecords(pointed, encodeTxt(NAME.toUpperCase(), ["two"]))).toEqual({
      texts: ["one", "two"],
    });
  });

  test("texts of aliases, in any order", () => {
    const first = encodeRecord(NAME, TYPE.CNAME, encodeName("a.example"));
    const second = encodeRecord("a.example", TYPE.CNAME, encodeName("b.example"));
    const end = encodeTxt("b.example", ["proof"]);
    expect(readRecords(first, second, end)).toEqual({ texts: ["proof"] });
    expect(readRecords(end, second, first)).toEqual({ texts: ["proof"] });
  });

  test("no text of another name, type or class", () => {
    const otherName = encodeTxt("_svc-challenge.other.example", ["no"]);
    const address = encodeRecord(NAME, TYPE.A, Buffer.from([127, 0, 0, 1]));
    const chaos = encodeTxt(NAME, ["no"]);
    chaos.writeUInt16BE(3, encodeName(NAME).length + 2);
    expect(readRecords(otherName, address, chaos)).toEqual({ texts: [] });
  });

  test("no text of a name with a dot inside a label", () => {
    const label = Buffer.concat([
      Buffer.from([NAME.length - ".example".length]),
      Buffer.from("_svc-challenge.shop"),
      encodeName("example"),
    ]);
    expect(readRecords(encodeRecord(label, TYPE.TXT, Buffer.from("\x02no")))).toEqual({
      texts: [],
    });
  });

  test("no text of a name that does not exist", () => {
    expect(read(message(ASKED, { rcode: 3 }))).toEqual({ texts: [] });
  });

  test("no text when aliases form a cycle", () => {
    const there = encodeRecord(NAME, TYPE.CNAME, encodeName("a.example"));
    const back = encodeRecord("a.example", TYPE.CNAME, encodeName(NAME));
    expect(readRecords(there, back)).toEqual({ texts: [] });
  });
});

const proof = () => encodeTxt(NAME, ["proof"]);
/** A record of a name that starts with a pointer to this offset of the message. */
const pointing = (offset: number) =>
  encodeRecord(Buffer.from([0xc0 | (offset >> 8), offset & 0xff]), TYPE.TXT, Buffer.from("\x02no"));
const recordsStart = 12 + ASKED.bytes.length;

describe("a response is rejected that is", () => {
  test.each([
    ["an answer with another id", message(ASKED, { id: 7, records: [proof()] })],
    ["a question", message(ASKED, { isQuery: true, records: [proof()] })],
    [
      "an answer to another name",
      message(ASKED, {
        question: encodeQuestion("_svc-challenge.evil.example"),
        records: [proof()],
      }),
    ],
    ["an answer to another type", message(ASKED, { question: encodeQuestion(NAME, TYPE.A) })],
    ["SERVFAIL", message(ASKED, { rcode: 2, records: [proof()] })],
    ["REFUSED", message(ASKED, { rcode: 5, records: [proof()] })],
    ["an answer that was cut", message(ASKED, { truncated: true, records: [proof()] })],
    ["more records than there are", message(ASKED, { count: 65_535, records: [proof()] })],
    ["a pointer to itself", message(ASKED, { records: [pointing(recordsStart)] })],
    ["a pointer forward", message(ASKED, { records: [pointing(recordsStart + 20), proof()] })],
    ["a pointer beyond the end", message(ASKED, { records: [pointing(0x3fff)] })],
    [
      "pointers that lead to each other",
      message(ASKED, {
        records: [
          encodeRecord(
            Buffer.from([0x01, 0x61, 0xc0, recordsStart]),
            TYPE.TXT,
            Buffer.from("\x02no"),
          ),
        ],
      }),
    ],
    [
      "a label of a kind that is none",
      message(ASKED, {
        records: [encodeRecord(Buffer.from([0x80, 0]), TYPE.TXT, Buffer.alloc(0))],
      }),
    ],
    [
      "a name of more than 255 bytes",
      message(ASKED, { records: [encodeTxt(`${"a".repeat(63)}.`.repeat(4) + "a", ["no"])] }),
    ],
    [
      "a text that is longer than its record",
      message(ASKED, { records: [encodeRecord(NAME, TYPE.TXT, Buffer.from("\x09no")), proof()] }),
    ],
    [
      "an alias that is longer than its record",
      message(ASKED, { records: [encodeRecord(NAME, TYPE.CNAME, Buffer.from([1])), proof()] }),
    ],
    ["nothing", Buffer.alloc(0)],
  ])("%s", (_, bytes) => {
    expect(read(bytes)).toEqual({ failure: expect.any(String) });
  });

  test("truncated at any byte", () => {
    const whole = message(ASKED, {
      records: [
        encodeRecord(NAME, TYPE.CNAME, encodeName("a.example")),
        encodeTxt("a.example", ["p", "q"]),
      ],
    });
    for (let length = 0; length < whole.length; length++) {
      expect(read(whole.subarray(0, length))).toHaveProperty("failure");
    }
  });
});

test("the largest possible response is parsed quickly", () => {
  const tiny = encodeRecord(POINTER_TO_QUESTION, TYPE.TXT, Buffer.from("\x00"));
  const count = Math.floor((65_535 - recordsStart) / tiny.length);
  const before = performance.now();
  const answer = readRecords(...Array.from({ length: count }, () => tiny));
  expect(answer).toEqual({ texts: Array(count).fill("") });
  expect(performance.now() - before).toBeLessThan(10_000);
});
