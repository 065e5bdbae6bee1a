import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import {
  parseCodeAndText,
  parseCredit,
  FLAG,
  FRAME,
  FrameWriter,
  Hello,
  parseJsonPayload,
  parseRequestHead,
  RESET,
  decodeStrictText,
  type Frame,
  FRAME_HEADER_BYTES,
  FRAME_MAX_BYTES,
} from "../../../protocol/wire/frames.ts";
import { readFrames } from "../../../protocol/wire/read-frames.ts";
import { parseResponseHead } from "../../../protocol/wire/response-head.ts";
import {
  FRAME_DATA_MAX_BYTES,
  RESPONSE_HEAD_MAX_BYTES,
  RESPONSE_HEADERS_MAX,
} from "../../../protocol/limits.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);

function written(write: (writer: FrameWriter) => void): Uint8Array {
  const writer = new FrameWriter();
  write(writer);
  return writer.take().slice();
}

function read(message: Uint8Array): { whole: boolean; frames: Frame[] } {
  const frames: Frame[] = [];
  return { whole: readFrames(message, (frame) => frames.push(frame)), frames };
}

const THREE = written((writer) => {
  writer.writeJson(FRAME.request, FLAG.end, 7, ["GET", "/ä", "host", "a.localhost"]);
  writer.writeBytes(FRAME.data, 0, 0xffffffff, new Uint8Array([1, 2, 3]));
  writer.writeCredit(9, 0xfffffffe);
});

describe("frames", () => {
  test("are read as they were written", () => {
    const { whole, frames } = read(THREE);
    expect(whole).toBe(true);
    const [request, data, credit] = frames;
    expect(request).toMatchObject({ type: FRAME.request, flags: FLAG.end, stream: 7 });
    expect(parseRequestHead(request!.payload, request!.flags)).toEqual({
      head: ["GET", "/ä", "host", "a.localhost"],
      requestId: undefined,
    });
    expect(data).toMatchObject({ type: FRAME.data, flags: 0, stream: 0xffffffff });
    expect([...data!.payload]).toEqual([1, 2, 3]);
    expect(parseCredit(credit!.payload)).toBe(0xfffffffe);
    expect(frames).toHaveLength(3);
  });

  test("of data that follow one another become one, up to a bound, and none is added to a message that was taken", () => {
    const writer = new FrameWriter();
    const summarize = () => {
      const { frames } = read(writer.take().slice());
      return frames.map(({ stream, payload }) => [
        stream,
        String.fromCharCode(...payload.slice(0, 9)),
      ]);
    };
    for (const letter of "abc") writer.writeData(1, utf8(letter));
    writer.writeData(0xffffffff, utf8("d"));
    writer.writeData(0xffffffff, utf8("e"));
    writer.writeData(1, utf8("f"));
    writer.writeCredit(1, 0x67676767);
    writer.writeData(1, utf8("h"));
    writer.writeBytes(FRAME.data, FLAG.end, 1, utf8("i"));
    expect(summarize()).toEqual([
      [1, "abc"],
      [0xffffffff, "de"],
      [1, "f"],
      [1, "gggg"],
      [1, "h"],
      [1, "i"],
    ]);
    writer.writeData(1, utf8("k"));
    expect(summarize()).toEqual([[1, "k"]]);

    for (let part = 0; part < 5; part++)
      writer.writeData(1, new Uint8Array(FRAME_DATA_MAX_BYTES / 2));
    const { frames } = read(writer.take().slice());
    const half = FRAME_DATA_MAX_BYTES / 2;
    expect(frames.map(({ payload }) => payload.byteLength)).toEqual([2 * half, 2 * half, half]);
  });

  test("of every type are read as they were written", () => {
    const message = written((writer) => {
      writer.writeText(FRAME.goingAway, 0, 0, "𝄞 later");
      writer.writeCodeAndText(FRAME.reset, 1, RESET.originFailed, "broke ☂");
      writer.writeCodeAndText(FRAME.close, 2, 4999, "");
      writer.writeBytes(FRAME.binary, FLAG.more, 3, new Uint8Array());
    });
    const { frames } = read(message);
    expect(decodeStrictText(frames[0]!.payload)).toBe("𝄞 later");
    expect(parseCodeAndText(frames[1]!.payload)).toEqual({
      code: RESET.originFailed,
      text: "broke ☂",
    });
    expect(parseCodeAndText(frames[2]!.payload)).toEqual({ code: 4999, text: "" });
    expect(frames[3]).toMatchObject({ type: FRAME.binary, flags: FLAG.more });
    expect(frames[3]!.payload.byteLength).toBe(0);
  });

  test("are found in a message that is a view into a larger buffer", () => {
    const padded = new Uint8Array(THREE.byteLength + 20);
    padded.set(THREE, 13);
    expect(read(padded.subarray(13, 13 + THREE.byteLength))).toEqual(read(THREE));
  });

  test("truncated at any byte are rejected, and the frames before are delivered", () => {
    const ends = [0];
    for (const { payload } of read(THREE).frames)
      ends.push(ends.at(-1)! + FRAME_HEADER_BYTES + payload.byteLength);
    for (let length = 0; length <= THREE.byteLength; length += 1) {
      const { whole, frames } = read(THREE.subarray(0, length));
      expect(whole).toBe(ends.includes(length));
      expect(frames).toHaveLength(ends.filter((end) => end > 0 && end <= length).length);
    }
  });

  test.each([FRAME_MAX_BYTES + 1, 0x7fffffff, 0x80000000, 0xffffffff])(
    "that announce %i bytes are refused before anything is allocated",
    (length) => {
      const message = new Uint8Array(FRAME_HEADER_BYTES);
      new DataView(message.buffer).setUint32(6, length);
      expect(read(message)).toEqual({ whole: false, frames: [] });
    },
  );

  test("above the limit are rejected even when they are complete", () => {
    const payload = new Uint8Array(FRAME_MAX_BYTES + 1);
    const message = written((writer) => writer.writeBytes(FRAME.data, 0, 1, payload));
    expect(read(message).whole).toBe(false);
    const largest = written((w) => w.writeBytes(FRAME.data, 0, 1, payload.subarray(1)));
    expect(read(largest).whole).toBe(true);
  });

  test("of random bytes never throw, whichever parser reads their payloads", () => {
    const bytes = fc.uint8Array({ maxLength: 79, size: "max" });
    // With a header that announces the real length, so that the payload is read.
    const frame = bytes.map((payload) => {
      const message = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
      message.set(payload.subarray(0, FRAME_HEADER_BYTES));
      message.set(payload, FRAME_HEADER_BYTES);
      new DataView(message.buffer).setUint32(6, payload.length);
      return message;
    });
    const parsers = [
      parseCodeAndText,
      parseCredit,
      parseJsonPayload,
      (payload: Uint8Array) => parseRequestHead(payload, 0),
      (payload: Uint8Array) => parseRequestHead(payload, FLAG.id),
      parseResponseHead,
      decodeStrictText,
    ];
    fc.assert(
      fc.property(fc.oneof(bytes, frame), (message) => {
        readFrames(message, ({ payload }) => {
          for (const parse of parsers) parse(payload);
        });
      }),
      { seed: 1, numRuns: 5_000 },
    );
  });

  test("with one changed byte never throw", () => {
    for (let at = 0; at < THREE.byteLength; at += 1) {
      for (let change = 1; change <= 0xff; change += 1) {
        const message = THREE.slice();
        message[at]! ^= change;
        readFrames(message, ({ payload }) => parseRequestHead(payload, 0));
      }
    }
  });
});

describe("a writer", () => {
  test("grows for any payload and starts with an empty message each time", () => {
    const writer = new FrameWriter();
    const large = new Uint8Array(100_000).map((_, at) => at % 251);
    writer.writeBytes(FRAME.data, 0, 1, large.subarray(0, 5));
    writer.writeBytes(FRAME.data, 0, 2, large);
    const { whole, frames } = read(writer.take().slice());
    expect(whole).toBe(true);
    expect(Buffer.compare(frames[1]!.payload, large)).toBe(0);
    expect(writer.length).toBe(0);
    writer.writeCredit(3, 1);
    expect(read(writer.take()).frames).toHaveLength(1);
  });
});

describe("a head", () => {
  test.each([
    ["no JSON", "{"],
    ["no array", '{"0":"GET","1":"/"}'],
    ["no target", '["GET"]'],
    ["half a header line", '["GET","/","host"]'],
    ["a number among the texts", '["GET","/","host",1]'],
  ])("of a request with %s is rejected", (_, json) => {
    expect(parseRequestHead(utf8(json), 0)).toBeNull();
  });

  test("of a request has the id as its last text, when flagged", () => {
    const payload = utf8('["GET","/","host","a.localhost","7d1f"]');
    const head = ["GET", "/", "host", "a.localhost"];
    expect(parseRequestHead(payload, FLAG.id)).toEqual({ head, requestId: "7d1f" });
    expect(parseRequestHead(payload, 0)).toBeNull();
    expect(parseRequestHead(utf8('["GET","7d1f"]'), FLAG.id)).toBeNull();
  });

  test.each([
    ["no status", "[]"],
    ["a text for a status", '["200"]'],
    ["a fraction for a status", "[200.5]"],
    ["half a header line", '[200,"a"]'],
    ["a number among the texts", '[200,"a",1]'],
    ["null", "null"],
  ])("of a response with %s is rejected", (_, json) => {
    expect(parseResponseHead(utf8(json))).toBeNull();
  });

  test("of a response is too large beyond 256 headers or 128 KiB", () => {
    const withHeaders = (count: number) =>
      utf8(JSON.stringify([200, ...Array.from({ length: count }, () => ["a", ""]).flat()]));
    const ofBytes = (bytes: number) => utf8(`[200,"a","${"b".repeat(bytes - 12)}"]`);
    const heads = [
      withHeaders(RESPONSE_HEADERS_MAX),
      withHeaders(RESPONSE_HEADERS_MAX + 1),
      ofBytes(RESPONSE_HEAD_MAX_BYTES),
      ofBytes(RESPONSE_HEAD_MAX_BYTES + 1),
    ].map(parseResponseHead);
    expect(heads.map((head) => head === "too_large")).toEqual([false, true, false, true]);
    expect(heads).not.toContain(null);
  });

  test("of a response is not parsed when it has more values, or more levels, than a head", () => {
    const withValue = (value: string) => utf8(`[200,"a",${value}]`.padEnd(16 * 1024));
    const parse = vi.spyOn(JSON, "parse");
    const heads = [
      withValue(JSON.stringify("[{,".repeat(1_000))),
      withValue(
        Array(2 * RESPONSE_HEADERS_MAX)
          .fill("{}")
          .join(),
      ),
      withValue("[".repeat(1_000)),
    ].map(parseResponseHead);
    expect(heads.map((head) => head === "too_large")).toEqual([false, true, true]);
    expect(parse).toHaveBeenCalledTimes(1);
    parse.mockRestore();
  });

  test("keeps repeated names apart and in order", () => {
    const json = '[200,"set-cookie","a=1","set-cookie","b=2"]';
    expect(parseResponseHead(utf8(json))).toEqual({
      status: 200,
      pairs: ["set-cookie", "a=1", "set-cookie", "b=2"],
    });
  });
});

describe("a hello", () => {
  const good = {
    protocol: 1,
    agent: "mine/1.0",
    capabilities: ["websocket"],
    streamWindow: 1,
    connectionWindow: 1,
  };

  test("may have fields that this version does not know", () => {
    expect(Hello.parse({ ...good, future: true })).toEqual(good);
  });

  test.each([
    ["no window", { streamWindow: 0 }],
    ["half a window", { connectionWindow: 1.5 }],
    ["a name without end", { agent: "x".repeat(201) }],
    ["capabilities without end", { capabilities: Array(51).fill("a") as string[] }],
    ["a text for a version", { protocol: "1" }],
  ])("with %s is refused", (_, change) => {
    expect(Hello.safeParse({ ...good, ...change }).success).toBe(false);
  });
});

test("text that is not UTF-8 is rejected", () => {
  expect(decodeStrictText(utf8("\ufeffé𝄞"))).toBe("\ufeffé𝄞");
  expect(decodeStrictText(new Uint8Array([0xc3, 0x28]))).toBeNull();
  expect(decodeStrictText(utf8("𝄞").subarray(0, 3))).toBeNull();
});

test("freeing the large buffers keeps the frames that are not taken yet", () => {
  const writer = new FrameWriter();
  writer.writeText(FRAME.data, 0, 1, "a".repeat(100_000));
  const { length } = writer;
  writer.freeLargeBuffers();
  expect(read(writer.take().slice()).frames.map(({ payload }) => payload.byteLength)).toEqual([
    100_000,
  ]);
  expect(length).toBe(100_000 + FRAME_HEADER_BYTES);
});
