/** A local connection that is joined with a stream of frames. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { FrameSplice } from "../../../../agent/tunnel/frame-splice.ts";
import { SendWindows } from "../../../../protocol/wire/flow-control.ts";
import { RESET } from "../../../../protocol/wire/frames.ts";
import { adoptSocket } from "../../../../sockets/socket-reader.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

test("a local program that resets its connection is noticed, although its bytes wait for credit", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const program = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [socket] = (await once(server, "connection")) as [Socket];
  server.close();
  const breaks = Promise.withResolvers<unknown[]>();
  const splice = new FrameSplice(adoptSocket(socket), {
    id: 1,
    windows: new SendWindows(1, 1),
    localEnd: "the local program",
    send: () => undefined,
    onComplete: () => undefined,
    onBreak: (...reason) => breaks.resolve(reason),
  });
  splice.start();
  program.write("more than the window");
  await vi.waitUntil(() => splice.bytesFromSocket > 0, WAIT_OPTIONS);
  program.resetAndDestroy();
  await once(program, "close");
  vi.advanceTimersByTime(20_000);
  expect(await breaks.promise).toEqual([
    RESET.originFailed,
    "the local program cut the connection",
  ]);
});
