/**
 * What a visitor may send on a WebSocket and what RFC 6455 forbids, after the cases of the Autobahn test suite, whose
 * numbers the names have.
 */
import { buildClose, OPCODE, type FrameToSend } from "../tunnel/raw-websocket.ts";

export interface WebSocketCase {
  name: string;
  frames: FrameToSend[];
}

const text = (payload: Buffer | string): FrameToSend => ({ opcode: OPCODE.text, payload });
const binary = (payload: Buffer): FrameToSend => ({ opcode: OPCODE.binary, payload });
const ping = (payload: Buffer | string): FrameToSend => ({ opcode: OPCODE.ping, payload });
const pong = (payload: Buffer | string): FrameToSend => ({ opcode: OPCODE.pong, payload });
const more = (frame: FrameToSend): FrameToSend => ({ ...frame, fin: false });
const rest = (payload: Buffer | string, fin = true): FrameToSend => ({
  opcode: OPCODE.continuation,
  payload,
  fin,
});
const hex = (digits: string) => Buffer.from(digits.replaceAll(" ", ""), "hex");
const SIZES = [0, 1, 125, 126, 127, 128, 65_535, 65_536, 70_000, 262_144];

function messages(): WebSocketCase[] {
  return SIZES.flatMap((size) => [
    { name: `1.1 text of ${size} bytes`, frames: [text("*".repeat(size))] },
    { name: `1.2 binary of ${size} bytes`, frames: [binary(Buffer.alloc(size, 0xfe))] },
  ]);
}

function pings(): WebSocketCase[] {
  const ten = Array.from({ length: 10 }, (_, i) => ping(`payload-${i}`));
  return [
    { name: "2.1 an empty ping", frames: [ping("")] },
    { name: "2.2 a ping with text", frames: [ping("Hello, world!")] },
    { name: "2.3 a ping with bytes", frames: [ping(hex("00fffefdfcfb00ff"))] },
    { name: "2.4 a ping of 125 bytes", frames: [ping(Buffer.alloc(125, 0xfe))] },
    { name: "2.5 a ping of 126 bytes", frames: [ping(Buffer.alloc(126, 0xfe))] },
    { name: "2.5 a ping of 70,000 bytes", frames: [ping(Buffer.alloc(70_000, 0xfe))] },
    { name: "2.7 a pong without a ping", frames: [pong("")] },
    { name: "2.8 the same with a payload", frames: [pong("unsolicited")] },
    { name: "2.9 the same before a ping", frames: [pong("unsolicited"), ping("ping")] },
    { name: "2.10 ten pings", frames: ten },
    { name: "2.11 ten pings between messages", frames: ten.flatMap((one) => [one, text("x")]) },
  ];
}

function reserved(): WebSocketCase[] {
  const opcodes = [3, 4, 5, 6, 7, 11, 12, 13, 14, 15];
  const bits = [1, 2, 3, 4, 5, 6, 7];
  return [
    ...bits.flatMap((rsv) => [
      { name: `3 reserved bits ${rsv} on a text`, frames: [text("ok"), { ...text("x"), rsv }] },
      { name: `3 reserved bits ${rsv} on a ping`, frames: [{ ...ping("x"), rsv }] },
    ]),
    ...opcodes.flatMap((opcode) => [
      { name: `4 opcode ${opcode}`, frames: [{ opcode }] },
      { name: `4 opcode ${opcode} after a text`, frames: [text("ok"), { opcode, payload: "x" }] },
    ]),
  ];
}

function fragments(): WebSocketCase[] {
  const [first, second] = [more(text("fragment1")), rest("fragment2")];
  return [
    { name: "5.1 a fragmented ping", frames: [more(ping("one")), rest("two")] },
    { name: "5.2 a fragmented pong", frames: [more(pong("one")), rest("two")] },
    { name: "5.3 a fragmented text", frames: [first, second] },
    { name: "5.6 a ping between fragments", frames: [first, ping("ping"), second] },
    { name: "5.9 a continuation of nothing", frames: [rest("x"), text("hello")] },
    { name: "5.10 the same, of more than one frame", frames: [rest("x", false), text("hello")] },
    { name: "5.15 a continuation after the end", frames: [first, second, rest("3", false)] },
    { name: "5.18 a text inside a text", frames: [first, text("x")] },
    { name: "5.18 a binary inside a text", frames: [first, binary(hex("00"))] },
    {
      name: "5.19 two pings between many fragments",
      frames: [first, rest("2", false), ping("a"), rest("3", false), ping("b"), rest("4")],
    },
    { name: "5.20 empty fragments", frames: [more(text("")), rest("", false), rest("")] },
    {
      name: "10.1 a text in 50 fragments",
      frames: [first, ...Array<FrameToSend>(50).fill(rest("*".repeat(1300), false)), rest("")],
    },
  ];
}

const VALID_TEXTS = {
  "6.1 nothing": "",
  "6.2 text": "48656c6c6f2dc2b540c39fc3b6c3a4c3bcc3a0c3a12d5554462d382121",
  "6.5 Greek": "cebae1bdb9cf83cebcceb5",
  "6.7 first of one byte": "00",
  "6.7 first of two bytes": "c280",
  "6.7 first of three bytes": "e0a080",
  "6.7 first of four bytes": "f0908080",
  "6.9 last of one byte": "7f",
  "6.9 last of two bytes": "dfbf",
  "6.9 last of three bytes": "efbfbf",
  "6.9 last of four bytes": "f48fbfbf",
  "6.11 before the surrogates": "ed9fbf",
  "6.11 after the surrogates": "ee8080",
  "6.11 replacement character": "efbfbd",
  "6.22 noncharacters": "efbfbe f09fbfbe f3bfbfbf efb790",
  "6.23 replacement characters in text": "61efbfbd62efbfbdefbfbd",
};

const INVALID_TEXTS = {
  "6.3 a surrogate in text": "cebae1bdb9cf83cebcceb5 eda080 656469746564",
  "6.6 an incomplete sequence": "cebae1bdb9cf83cebcce",
  "6.6 an incomplete sequence of three bytes": "e1bd",
  "6.6 an incomplete sequence of four bytes": "f09080",
  "6.8 first of five bytes": "f888808080",
  "6.8 first of six bytes": "fc8480808080",
  "6.10 last of five bytes": "fbbfbfbfbf",
  "6.10 last of six bytes": "fdbfbfbfbfbf",
  "6.10 beyond the last": "f4908080",
  "6.12 a continuation": "80",
  "6.12 the last continuation": "bf",
  "6.13 two continuations": "80bf",
  "6.13 seven continuations": "80bf80bf80bf80",
  "6.14 lonely beginnings of two bytes": "c020c120c220df20",
  "6.14 lonely beginnings of three bytes": "e020e120ef20",
  "6.14 lonely beginnings of four bytes": "f020f120f720",
  "6.15 missing continuations": "c0e080f08080",
  "6.17 the byte fe": "fe",
  "6.17 the byte ff": "ff",
  "6.17 both": "fefeffff",
  "6.18 overlong of two bytes": "c0af",
  "6.18 overlong of three bytes": "e080af",
  "6.18 overlong of four bytes": "f08080af",
  "6.18 overlong of five bytes": "f8808080af",
  "6.19 longest overlong of two bytes": "c1bf",
  "6.19 longest overlong of three bytes": "e09fbf",
  "6.19 longest overlong of four bytes": "f08fbfbf",
  "6.20 overlong zero": "c080",
  "6.20 overlong zero of four bytes": "f0808080",
  "6.21 first surrogate": "eda080",
  "6.21 last surrogate": "edbfbf",
  "6.21 a pair of surrogates": "eda080edb080",
};

/** Each text as a whole, byte by byte, and between valid texts. */
function texts(): WebSocketCase[] {
  const all = Object.entries({ ...VALID_TEXTS, ...INVALID_TEXTS });
  return all.flatMap(([name, digits]) => {
    const bytes = hex(digits);
    const [first, ...others] = [...bytes].map((byte) => Buffer.from([byte]));
    const split = [more(text(first ?? "")), ...others.map((byte) => rest(byte, false)), rest("")];
    const long = Buffer.concat([Buffer.alloc(100_000, "a"), bytes, Buffer.alloc(1_000, "b")]);
    return [
      { name, frames: [text(bytes)] },
      { name: `${name}, in fragments of a byte`, frames: split },
      { name: `${name}, after a valid text`, frames: [text("valid"), text(bytes)] },
      { name: `${name}, in a long text`, frames: [text(long)] },
    ];
  });
}

function closes(): WebSocketCase[] {
  const valid = [
    1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 3000, 3999, 4000, 4999,
  ];
  const invalid = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535];
  const empty = { opcode: OPCODE.close };
  return [
    { name: "7.1 an echo, then a Close", frames: [text("hello"), buildClose(1000)] },
    { name: "7.1 two Closes", frames: [buildClose(1000), buildClose(1000)] },
    { name: "7.1 a ping after a Close", frames: [buildClose(1000), ping("x")] },
    { name: "7.1 a text after a Close", frames: [buildClose(1000), text("x")] },
    { name: "7.1 a Close inside a text", frames: [more(text("x")), buildClose(1000), rest("y")] },
    { name: "7.3.1 a Close without a code", frames: [empty] },
    { name: "7.3.2 a Close of one byte", frames: [{ ...empty, payload: "x" }] },
    { name: "7.3.4 a reason", frames: [buildClose(1000, "Hello World!")] },
    { name: "7.3.5 a reason of 123 bytes", frames: [buildClose(1000, "*".repeat(123))] },
    { name: "7.3.6 a reason of 124 bytes", frames: [buildClose(1000, "*".repeat(124))] },
    { name: "7.5.1 a reason that is not UTF-8", frames: [buildClose(1000, hex("cebaeda080"))] },
    ...valid.map((code) => ({ name: `7.7 the code ${code}`, frames: [buildClose(code)] })),
    ...invalid.map((code) => ({ name: `7.9 the code ${code}`, frames: [buildClose(code)] })),
  ];
}

export const WEBSOCKET_CASES: WebSocketCase[] = [
  ...messages(),
  ...pings(),
  ...reserved(),
  ...fragments(),
  ...texts(),
  ...closes(),
];
