/** What the API does with captured requests whose headers were not stored, because too many had large ones. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ReplayResult } from "../../../protocol/schemas/inspector/replays.ts";
import { captureWithoutHeaders, LARGE_TEXT } from "../../harness/tunnel/large-heads.ts";
import { startTunnelOwner, type TunnelOwner } from "../../harness/tunnel/owned-tunnel.ts";
import { startVisitedTunnel, type VisitedTunnel } from "../../harness/tunnel/visited-tunnel.ts";

let owned: TunnelOwner;
beforeAll(async () => {
  owned = await startTunnelOwner({ kind: "public" });
});
afterAll(() => owned.stop());

async function startReplayableTunnel(subdomain: string): Promise<VisitedTunnel> {
  const tunnel = await startVisitedTunnel(owned, subdomain);
  await tunnel.put("inspector", { allowReplay: true });
  return tunnel;
}

test("a request without its headers has the beginning of its path, and no command or replay sends it", async () => {
  const { id: tunnelId, origin, send } = await startReplayableTunnel("large-requests");
  const capture = await captureWithoutHeaders(owned.owner, tunnelId, (path) =>
    send(`GET ${path}${LARGE_TEXT}?a=b`),
  );
  expect(capture).toMatchObject({
    path: origin.requests.at(-1)!.target.slice(0, 256),
    query: null,
    state: "complete",
    status: 200,
    request_headers: {},
    response_headers: { "content-length": "2" },
    truncated: { request: false, response: false, request_head: true, response_head: false },
  });
  origin.requests.length = 0;
  const refused = {
    status: 409,
    body: {
      error: "conflict",
      message: expect.stringMatching(/^The headers of this request were not captured/),
    },
  };
  expect(await owned.owner.get(`/inspector/${capture.id}/curl`)).toMatchObject(refused);
  const edits = { path: "/short", query: null, headers: { "x-a": "b" }, body: "body" };
  for (const body of [undefined, edits]) {
    expect(await owned.owner.post(`/inspector/${capture.id}/replay`, body)).toMatchObject(refused);
  }
  expect(origin.requests).toEqual([]);
});

test("a response without its headers does not keep its request from being sent again, and is compared without them", async () => {
  const { id: tunnelId, origin, send } = await startReplayableTunnel("large-responses");
  origin.respond = () => `HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-large: ${LARGE_TEXT}\r\n\r\nok`;
  const capture = await captureWithoutHeaders(owned.owner, tunnelId, (path) =>
    send(`GET ${path}?a=b`, "x-asked: yes\r\n\r\n"),
  );
  expect(capture).toMatchObject({
    query: "a=b",
    request_headers: { "x-asked": "yes" },
    response_headers: {},
    truncated: { request: false, response: false, request_head: false, response_head: true },
  });
  const command = await owned.owner.get<string>(`/inspector/${capture.id}/curl`);
  expect([command.status, command.body]).toEqual([200, expect.stringContaining("x-asked: yes")]);
  origin.respond = () => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-small: 1\r\n\r\nok";
  const { status, body } = await owned.owner.post<ReplayResult>(`/inspector/${capture.id}/replay`);
  expect([status, body.comparison]).toMatchObject([
    200,
    { same: true, headers: { cut: true, added: {}, removed: {}, changed: {} } },
  ]);
});
