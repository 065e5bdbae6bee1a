/** Stopping a server while visitors with HTTP/2 have requests in flight. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect, constants, type IncomingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test, vi } from "vitest";
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import { HttpsTestServer } from "../../harness/tunnel/https-server.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

test("a stop lets requests of HTTP/2 in flight finish, refuses others, and says which the last one was", async () => {
  let response: ServerResponse | undefined;
  const origin = createServer((request, answer) => {
    if (request.url === "/slow") (response = answer).write("begun, ");
    else if (request.method === "POST") request.pipe(answer);
    else answer.end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void origin.close());
  await once(origin, "listening");
  await using server = await HttpsTestServer.start();
  await server.share("shop", (origin.address() as AddressInfo).port);
  const session = connect(`https://127.0.0.1:${server.httpsPort}`, {
    servername: "shop.tunnels.example",
    ca: server.ca,
  });
  onTestFinished(() => session.destroy());
  session.on("error", () => undefined);
  const request = (path: string, method = "GET") =>
    session.request(
      { ":authority": "shop.tunnels.example", ":path": path, ":method": method },
      { endStream: method === "GET" },
    );
  const slow = request("/slow");
  const upload = request("/", "POST");
  upload.write("first, ");
  await Promise.all([once(slow, "response"), once(upload, "response")]);
  const goaway = once(session, "goaway");

  const stopped = server.api.server.stop("SIGTERM");
  let lastStreamId = 0;
  const refused = await vi.waitFor(async () => {
    const stream = request("/");
    const [headers] = (await once(stream.resume(), "response")) as [IncomingHttpHeaders];
    lastStreamId = stream.id!;
    expect(headers[":status"]).not.toBe(200);
    return headers;
  }, WAIT_OPTIONS);
  expect(refused).toMatchObject({
    ":status": 503,
    [ERROR_HEADER]: "unavailable",
    "retry-after": "5",
  });
  response!.end("finished");
  upload.end("last");
  expect(await Promise.all([text(slow), text(upload)])).toEqual(["begun, finished", "first, last"]);
  expect((await goaway).slice(0, 2)).toEqual([constants.NGHTTP2_NO_ERROR, lastStreamId]);
  expect(await stopped).toBe(0);
});
