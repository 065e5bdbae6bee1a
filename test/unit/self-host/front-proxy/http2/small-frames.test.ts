/** Bodies in small DATA frames, of which a visitor can send hundreds of thousands a second. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { SmallFrameLimiter } from "../../../../../self-host/front-proxy/http2/small-frame-limiter.ts";
import { FrontProxyStage, OK } from "../../../../harness/front-proxy-stage.ts";
import {
  END_STREAM,
  ERROR,
  formatFrame,
  STATUS_200,
  TYPE,
} from "../../../../harness/formats/http2-frames.ts";
import { WAIT_OPTIONS } from "../../../../harness/timeouts.ts";

/** More than a source may send at once. */
const TOO_MANY_FRAMES = 40_000;
let stage: FrontProxyStage;

beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterAll(() => stage.stop());
afterEach(() => stage.clear());

function formatData(text: string, flags = 0): Buffer {
  return formatFrame(TYPE.data, flags, 1, Buffer.from(text));
}

/** @returns the size and the data of each chunk of a request (RFC 9112 §7.1). */
function readChunks(request: string): string[] {
  const [, body = ""] = request.split("\r\n\r\n");
  return body.split("\r\n").filter((_, index) => index % 2 === 1);
}

test("small frames that arrive together are forwarded as one chunk, in their order with others", async () => {
  const visitor = await stage.visitWithFrames();
  visitor.request(1, { ":method": "POST" }, 0);
  const server = await stage.server();
  const letters = [..."abcdefghij"];
  const large = "x".repeat(100);
  visitor.socket.write(
    Buffer.concat([
      ...letters.map((letter) => formatData(letter)),
      formatData(large),
      formatData("y"),
      formatData("z"),
      formatData("", END_STREAM),
    ]),
  );
  await server.waitFor("\r\n0\r\n\r\n");
  expect(readChunks(server.received)).toEqual([letters.join(""), large, "yz"]);
});

test("a small frame is forwarded although nothing follows it", async () => {
  const visitor = await stage.visitWithFrames();
  visitor.request(1, { ":method": "POST" }, 0);
  const server = await stage.server();
  visitor.send(TYPE.data, 0, 1, Buffer.from("abc"));
  await server.waitFor("\r\n3\r\nabc\r\n");
  visitor.send(TYPE.data, 0, 1, Buffer.from("de"));
  await server.waitFor("\r\n2\r\nde\r\n");
  server.send(OK);
  const head = await visitor.waitFor(({ type }) => type === TYPE.headers);
  expect(head.payload[0]).toBe(STATUS_200);
});

test("a long body in small frames arrives whole, also when its server reads late", async () => {
  const visitor = await stage.visitWithFrames();
  visitor.request(1, { ":method": "POST" }, 0);
  const server = await stage.server();
  server.socket.pause();
  const parts = Array.from({ length: 10_000 }, (_, index) => `${index},`);
  visitor.socket.write(Buffer.concat(parts.map((part) => formatData(part))));
  await visitor.ping();
  server.socket.resume();
  visitor.send(TYPE.data, END_STREAM, 1, Buffer.from("end"));
  await server.waitFor("\r\n0\r\n\r\n");
  const chunks = readChunks(server.received);
  expect(chunks.join("")).toBe(`${parts.join("")}end`);
  expect(chunks.length).toBeLessThan(500);
});

test("a session with too many small frames ends", async () => {
  const visitor = await stage.visitWithFrames();
  for (const stream of [1, 3]) visitor.request(stream, { ":method": "POST" }, 0);
  await stage.server(1);
  const frame = formatData("x");
  visitor.socket.write(Buffer.concat(Array.from({ length: TOO_MANY_FRAMES }, () => frame)));
  expect(await visitor.waitForError(1)).toBe(ERROR.enhanceYourCalm);
  expect(await visitor.waitForError(0)).toBe(ERROR.enhanceYourCalm);
  await vi.waitUntil(() => visitor.isClosed && stage.closedSessions === 1, WAIT_OPTIONS);
  for (const server of stage.arrived) {
    await vi.waitUntil(() => server.hasEnded, WAIT_OPTIONS);
    expect(server.received).not.toContain("\r\n0\r\n\r\n");
  }
});

test("small frames are counted for each source", () => {
  const limiter = new SmallFrameLimiter();
  expect(limiter.take("a", 20_000, 0)).toBe(true);
  expect(limiter.take("a", 1, 0)).toBe(false);
  expect(limiter.take("b", 20_000, 0)).toBe(true);
  expect(limiter.take("a", 1_000, 100)).toBe(true);
  expect(limiter.take("a", 1, 100)).toBe(false);
});
