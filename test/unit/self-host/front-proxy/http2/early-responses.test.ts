/** Responses to requests whose body the server does not read. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { FrontProxyStage, OK } from "../../../../harness/front-proxy-stage.ts";
import { END_STREAM, STATUS_200, TYPE } from "../../../../harness/formats/http2-frames.ts";

const FRAME_BYTES = 16 * 1024;
/** More than the system buffers of a connection to the server, and less than the window of a stream. */
const FRAMES_MAX = 24;
let stage: FrontProxyStage;

beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterAll(() => stage.stop());
afterEach(() => stage.clear());

test("wherever the body waits when the server closes the connection, the next request is answered", async () => {
  for (let count = 1; count <= FRAMES_MAX; count += 1) {
    const visitor = await stage.visitWithFrames();
    const known = stage.arrived.length;
    visitor.request(1, { ":method": "POST", ":path": "/upload" }, 0);
    const server = await stage.server(known);
    await server.waitFor("\r\n\r\n");
    server.socket.pause();
    for (let index = 1; index <= count; index += 1)
      visitor.send(TYPE.data, index === count ? END_STREAM : 0, 1, Buffer.alloc(FRAME_BYTES));
    await visitor.ping();
    server.send(OK);
    await visitor.waitFor(({ stream, flags }) => stream === 1 && flags === END_STREAM);
    visitor.request(3, { ":path": "/next" });
    await visitor.ping();
    server.socket.destroy();
    const next = await stage.server(known + 1);
    await next.waitFor("/next");
    next.send(OK);
    const { type, payload } = await visitor.waitFor(({ stream }) => stream === 3);
    expect([count, type, payload[0]]).toEqual([count, TYPE.headers, STATUS_200]);
    visitor.socket.destroy();
  }
});
