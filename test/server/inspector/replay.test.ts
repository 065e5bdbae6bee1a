/** Replays of captured requests: what the local server receives, and how the responses are compared. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import type { ReplayResult } from "../../../protocol/schemas/inspector/replays.ts";
import { createCaller, waitUntil, type Person } from "../../harness/server/api.ts";
import { startTunnelOwner, type TunnelOwner } from "../../harness/tunnel/owned-tunnel.ts";
import { createRandom } from "../../harness/random.ts";
import { findHeader } from "../../harness/tunnel/raw-http.ts";
import { OK, type OriginRequest } from "../../harness/tunnel/origin.ts";
import {
  listCaptures,
  waitForCaptures,
  getCapture,
  startVisitedTunnel,
  type VisitedTunnel,
} from "../../harness/tunnel/visited-tunnel.ts";

let owned: TunnelOwner;
let owner: Person;
let shop: VisitedTunnel;
beforeAll(async () => {
  owned = await startTunnelOwner({ kind: "public" });
  owner = owned.owner;
  shop = await startVisitedTunnel(owned, "replayed");
  await shop.put("inspector", { allowReplay: true });
});
afterAll(() => owned.stop());

let visits = 0;
/** Sends one unique request. @returns its capture, as it is listed. */
async function captureRequest(
  method = "GET",
  rest: Buffer | string = "\r\n",
  tunnel = shop,
): Promise<CaptureSummary> {
  visits += 1;
  const path = `/visit/${visits}`;
  tunnel.origin.requests.length = 0;
  await tunnel.send(`${method} ${path}?q=%20`, rest);
  const [summary] = await waitForCaptures(owner, { tunnel_id: tunnel.id, path }, 1);
  return summary!;
}

const replay = (id: string, edits?: object) =>
  owner.post<ReplayResult>(`/inspector/${id}/replay`, edits);

/** @returns false for headers that the service adds. */
const isVisitorHeader = (name: string) =>
  !name.startsWith("x-forwarded-") && name !== "underpass-replay";
const getVisitorHeaders = ({ headers }: OriginRequest) =>
  headers
    .map(([name, value]): [string, string] => [name.toLowerCase(), value])
    .filter(([name]) => isVisitorHeader(name))
    .sort();

describe("the local server receives", () => {
  const random = createRandom(2);
  const withLength = (bytes: Uint8Array, lines = "") =>
    Buffer.concat([Buffer.from(`content-length: ${bytes.length}\r\n${lines}\r\n`), bytes]);
  const chunked = (...chunks: string[]) =>
    `transfer-encoding: chunked\r\n\r\n${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("")}0\r\n\r\n`;

  test.each([
    ["GET", "x-asked: a, b\r\naccept: */*\r\n\r\n"],
    ["HEAD", "\r\n"],
    ["DELETE", "\r\n"],
    ["POST", withLength(Buffer.from("a=b"), "content-type: application/x-www-form-urlencoded\r\n")],
    ["POST", withLength(Buffer.alloc(0))],
    ["PUT", withLength(random.bytes(100_000))],
    ["PATCH", withLength(random.bytes(512 * 1024))],
    ["PURGE", chunked("one", "two")],
  ])("the same request again, byte for byte: %s", async (method, rest) => {
    const original = await captureRequest(method, rest);
    const { status, body } = await replay(original.id);
    expect([status, body]).toEqual([
      200,
      {
        id: expect.any(String),
        replay_of: original.id,
        comparison: expect.objectContaining({ same: true }),
      },
    ]);
    const [first, again, ...others] = shop.origin.requests;
    expect(others).toEqual([]);
    const isChunked = findHeader(first!.headers, "transfer-encoding") !== undefined;
    expect([again!.method, again!.target]).toEqual([first!.method, first!.target]);
    expect(again!.body.equals(first!.body)).toBe(true);
    const framing = ["transfer-encoding", "content-length"];
    const lines = (seen: OriginRequest) =>
      getVisitorHeaders(seen).filter(([name]) => !isChunked || !framing.includes(name));
    expect(lines(again!)).toEqual(lines(first!));
    expect(findHeader(first!.headers, "underpass-replay")).toBeUndefined();
    expect(findHeader(again!.headers, "underpass-replay")).toBe(original.id);

    const replayed = await getCapture(owner, body.id);
    const { id, tunnel_id, path, query } = await getCapture(owner, original.id);
    expect(replayed).toMatchObject({
      tunnel_id,
      method,
      path,
      query,
      replay_of: id,
      state: "complete",
    });
  });

  test("the edits and the unchanged rest", async () => {
    const lines =
      "content-type: text/plain\r\nx-unchanged: 1\r\nx-changed: old\r\nx-removed: 1\r\n";
    const original = await captureRequest("POST", withLength(Buffer.from("old body"), lines));
    const edits = {
      method: "PUT",
      path: "/other/%2f",
      query: "a=b&c",
      headers: { "X-Changed": "new", "x-removed": null, "x-added": "žluť" },
      body: "new body: ž",
    };
    const { body } = await replay(original.id, edits);
    const again = shop.origin.requests[1]!;
    expect([again.method, again.target, again.body.toString()]).toEqual([
      "PUT",
      "/other/%2f?a=b&c",
      edits.body,
    ]);
    const received = Object.fromEntries(getVisitorHeaders(again));
    expect(received).toMatchObject({
      "content-type": "text/plain",
      "x-unchanged": "1",
      "x-changed": "new",
      "content-length": String(Buffer.byteLength(edits.body)),
    });
    expect(Buffer.from(received["x-added"]!, "latin1").toString()).toBe("žluť");
    expect(received).not.toHaveProperty("x-removed");
    expect(await getCapture(owner, body.id)).toMatchObject({
      method: "PUT",
      path: "/other/%2f",
      query: "a=b&c",
      request_body: Buffer.from(edits.body).toString("base64"),
    });
  });

  test.each([
    ["no query", { query: null }, { target: /^\/visit\/\d+$/ }],
    ["an empty query", { query: "" }, { target: /^\/visit\/\d+\?$/ }],
    ["another path with the same query", { path: "/" }, { target: /^\/\?q=%20$/ }],
    [
      "any bytes",
      { body_base64: Buffer.from([0, 255, 10]).toString("base64") },
      { body: Buffer.from([0, 255, 10]) },
    ],
    ["an empty body", { body: "" }, { body: Buffer.alloc(0) }],
  ])("%s", async (_name, edits, expected) => {
    const original = await captureRequest("POST", withLength(Buffer.from("body")));
    expect((await replay(original.id, edits)).status).toBe(200);
    const again = shop.origin.requests[1]!;
    if ("target" in expected) expect(again.target).toMatch(expected.target);
    else expect(again.body).toEqual(expected.body);
  });

  test("no redacted headers, unless they are given again", async () => {
    const original = await captureRequest(
      "GET",
      "authorization: Bearer secret\r\ncookie: a=b\r\n\r\n",
    );
    await replay(original.id);
    await replay(original.id, { headers: { authorization: "Bearer other" } });
    const [first, again, edited] = shop.origin.requests;
    expect(findHeader(first!.headers, "authorization")).toBe("Bearer secret");
    expect(Object.fromEntries(getVisitorHeaders(again!))).not.toHaveProperty("authorization");
    expect(Object.fromEntries(getVisitorHeaders(again!))).not.toHaveProperty("cookie");
    expect(findHeader(edited!.headers, "authorization")).toBe("Bearer other");
  });

  test("a replay of a replay, which names the replay that it repeats", async () => {
    const original = await captureRequest();
    const { body: first } = await replay(original.id);
    const { body: second } = await replay(first.id);
    expect([first.replay_of, second.replay_of]).toEqual([original.id, first.id]);
    const replayHeaders = shop.origin.requests.map(({ headers }) =>
      findHeader(headers, "underpass-replay"),
    );
    expect(replayHeaders).toEqual([undefined, original.id, first.id]);
  });

  test("no replay header from a visitor", async () => {
    await captureRequest("GET", "underpass-replay: 1\r\nUnderpass_Replay: 2\r\n\r\n");
    const lines = shop.origin.requests[0]!.headers.map(([name]) => name.toLowerCase());
    expect(lines.filter((name) => /underpass.replay/.test(name))).toEqual([]);
  });
});

describe("the comparison", () => {
  /** Makes the local server send these responses in order, and after them its usual response. */
  const respondWith = (...all: string[]) => {
    shop.origin.respond = () => all.shift() ?? OK;
  };
  const buildResponse = (status: number, body: string, lines = "") =>
    `HTTP/1.1 ${status} X\r\ncontent-length: ${body.length}\r\n${lines}\r\n${body}`;

  test("shows the differences that a change of the local server has caused", async () => {
    respondWith(
      buildResponse(500, '{"error":"no","at":1}', "x-a: 1\r\nx-b: 1\r\n"),
      buildResponse(200, '{"at":1,"ok":true}', "x-b: 2\r\nx-c: 1\r\n"),
    );
    const { id } = await captureRequest();
    const { body } = await replay(id);
    expect(body.comparison).toMatchObject({
      same: false,
      status: { original: 500, replayed: 200, same: false },
      headers: {
        added: { "x-c": "1" },
        removed: { "x-a": "1" },
        changed: { "x-b": { original: "1", replayed: "2" } },
      },
      body: {
        same: false,
        cut: false,
        size: { original: 21, replayed: 18 },
        first_difference: 2,
        differences: [
          { path: "/error", original: '"no"', replayed: null },
          { path: "/ok", original: null, replayed: "true" },
        ],
      },
    });
  });

  test("covers the received part if the response breaks off or is missing", async () => {
    const original = await captureRequest("GET", "\r\n", await startBreakingTunnel("breaking"));
    const { status, body } = await replay(original.id);
    expect([status, body.comparison]).toEqual([
      200,
      expect.objectContaining({ status: { original: 200, replayed: 502, same: false } }),
    ]);
  });

  /** A tunnel whose local server answers the first request, and then closes every connection without a response. */
  async function startBreakingTunnel(name: string): Promise<VisitedTunnel> {
    const tunnel = await startVisitedTunnel(owned, name);
    await tunnel.put("inspector", { allowReplay: true });
    let isFirst = true;
    tunnel.origin.respond = (_seen, socket) => {
      if (!isFirst) return void socket.destroy();
      isFirst = false;
      return buildResponse(200, "ok");
    };
    return tunnel;
  }
});

const REFUSED = [
  { method: "GET /" },
  { method: "CONNECT" },
  { method: "TRACE" },
  { method: "" },
  { path: "relative" },
  { path: "/a?b" },
  { path: "/a#b" },
  { path: "/a b" },
  { path: "/a\r\nx: y" },
  { path: "/ž" },
  { query: "a b" },
  { query: "a#b" },
  { query: "a\r\n" },
  { headers: { "x-a": "b\r\nx-c: d" } },
  { headers: { "x a": "b" } },
  { headers: { "": "b" } },
  { headers: { "x-a": 1 } },
  { headers: { host: "other" } },
  { headers: { "content-length": "1" } },
  { headers: { "Transfer-Encoding": "chunked" } },
  { headers: { connection: "x" } },
  { headers: { "x-forwarded-for": "1.2.3.4" } },
  { headers: { X_Forwarded_For: "1.2.3.4" } },
  { headers: { "underpass-replay": "x" } },
  { headers: { "underpass-judged": null } },
  { headers: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`x-${at}`, ""])) },
  { body: 1 },
  { body: "x".repeat(512 * 1024 + 1) },
  { body: "ž".repeat(256 * 1024 + 1) },
  { body_base64: "not base64!" },
  { body: "", body_base64: "" },
];

describe("a replay is refused:", () => {
  test.each(REFUSED.map((edits) => [JSON.stringify(edits).slice(0, 60), edits]))(
    "%s",
    async (_name, edits) => {
      const { id } = await captureRequest();
      expect(await replay(id, edits as object)).toMatchObject({
        status: 400,
        body: { error: "invalid_request" },
      });
      expect(shop.origin.requests).toHaveLength(1);
    },
  );

  test("of a cut body, unless another one is given", async () => {
    const body = "x".repeat(512 * 1024 + 1);
    const { id } = await captureRequest("POST", `content-length: ${body.length}\r\n\r\n${body}`);
    expect(await replay(id)).toMatchObject({
      status: 409,
      body: { error: "conflict", message: expect.stringContaining("not complete") },
    });
    expect(shop.origin.requests).toHaveLength(1);
    expect((await replay(id, { body: "short" })).status).toBe(200);
    expect(shop.origin.requests[1]!.body.toString()).toBe("short");
  });

  test("of a WebSocket", async () => {
    shop.origin.respond = () => "HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n";
    const host = `replayed.localhost:${owned.api.server.port}`;
    const socket = new WebSocket(`ws://127.0.0.1:${owned.api.server.port}/socket`, {
      headers: { host },
    });
    await new Promise((resolve) => socket.on("error", resolve));
    const [{ id }] = (await waitForCaptures(owner, { path: "/socket" }, 1)) as [CaptureSummary];
    expect(await replay(id)).toMatchObject({ status: 409, body: { error: "conflict" } });
    shop.origin.respond = () => OK;
  });

  test("of a tunnel that does not allow it, which is the default", async () => {
    const tunnel = await startVisitedTunnel(owned, "replay-closed");
    const { id } = await captureRequest("GET", "\r\n", tunnel);
    const message = expect.stringMatching(/^This tunnel does not allow replays\./) as string;
    const refused = { status: 501, body: { error: "replay_disabled", message } };
    expect(await replay(id)).toMatchObject(refused);
    await tunnel.put("inspector", { allowReplay: true });
    expect((await replay(id)).status).toBe(200);
    await tunnel.put("inspector", { allowReplay: false });
    expect(await replay(id)).toMatchObject(refused);
  });

  test("of a capability token, also that of the agent which serves the tunnel", async () => {
    const { id } = await captureRequest();
    const agent = createCaller(owned.api.server, { authorization: `Bearer ${owned.token}` });
    expect((await agent.get(`/inspector?tunnel_id=${shop.id}`)).status).toBe(200);
    expect(await agent.post(`/inspector/${id}/replay`)).toMatchObject({
      status: 401,
      body: { error: "unauthorized" },
    });
    expect(shop.origin.requests).toHaveLength(1);
  });

  test("while no agent is connected", async () => {
    const tunnel = await startVisitedTunnel(owned, "replay-offline");
    await tunnel.put("inspector", { allowReplay: true });
    const { id } = await captureRequest("GET", "\r\n", tunnel);
    await tunnel.agent.close();
    await waitUntil(async () => !(await tunnel.getListed()).agentConnected);
    expect(await replay(id)).toMatchObject({ status: 502, body: { error: "agent_offline" } });
  });
});

test("a member may replay requests, and the audit log has each replay", async () => {
  const { id, tunnel_id } = await captureRequest();
  const member = await owned.api.colleague(owner, "member");
  const viewer = await owned.api.colleague(owner, "viewer");
  expect((await viewer.post(`/inspector/${id}/replay`)).status).toBe(403);
  const { body } = await member.post<ReplayResult>(`/inspector/${id}/replay`);
  const query = `action=tunnel_request_replayed&actor=${member.userId}`;
  const { body: events } = await owner.get<AuditEvent[]>(`/events?${query}`);
  expect(events).toMatchObject([{ resourceId: tunnel_id, metadata: { capture: id } }]);
  const { body: listed } = await listCaptures(viewer, { tunnel_id, limit: 1 });
  expect(listed).toMatchObject([{ id: body.id, replay_of: id, client_ip: expect.any(String) }]);
});
