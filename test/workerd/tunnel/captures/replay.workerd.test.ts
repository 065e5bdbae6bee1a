import { describe, expect, test } from "vitest";
import { FRAME } from "../../../../protocol/wire/frames.ts";
import { BODY_CAPTURE_MAX_BYTES } from "../../../../durable-objects/tunnel/captures/body.ts";
import type { ReplayChanges } from "../../../../protocol/schemas/inspector/captures.ts";
import {
  listCaptures,
  lastCapture,
  setCaptureSettings,
  decodeBase64Text,
  completeVisit,
} from "../../../harness/workerd/live-captures.ts";
import { LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";

async function createReplayable() {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await setCaptureSettings(tunnel, { allowReplay: true, redactHeaders: ["authorization"] });
  return { tunnel, agent };
}

/** The captured request to send again: a POST with a body. */
async function captureOrder(tunnel: LiveTunnel, agent: TestAgent): Promise<string> {
  const answer = tunnel.visit("/orders?draft", {
    method: "POST",
    body: "one",
    headers: { "x-kind": "big", authorization: "Bearer s", "underpass-replay": "forged" },
  });
  const { stream, pairs } = await agent.nextRequest();
  expect(pairs).not.toContain("forged");
  while (!(await agent.nextData()).isLast);
  agent.respond(stream, 201, [], "made");
  await (await answer).text();
  return (await lastCapture(tunnel)).id;
}

/** Answers a replay. @returns what the agent received. */
async function answerReplay(
  tunnel: LiveTunnel,
  agent: TestAgent,
  id: string,
  changes: ReplayChanges = {},
) {
  const outcome = tunnel.stub.replay(id, changes);
  const { stream, method, target, pairs } = await agent.nextRequest();
  let body = "";
  for (let isLast = false; !isLast;) {
    const data = await agent.nextData();
    body += data.text;
    isLast = data.isLast;
  }
  agent.respond(stream, 200, [], "again");
  return { method, target, lines: toHeaders(pairs), body, outcome: await outcome };
}

function toHeaders(pairs: string[]): Record<string, string> {
  const lines: Record<string, string> = {};
  for (let i = 0; i < pairs.length; i += 2) lines[pairs[i]!] = pairs[i + 1]!;
  return lines;
}

describe("a captured request that is sent again", () => {
  test("is unchanged except for its mark and redacted headers, and has a capture of its own", async () => {
    const { tunnel, agent } = await createReplayable();
    const id = await captureOrder(tunnel, agent);
    const { method, target, lines, body, outcome } = await answerReplay(tunnel, agent, id);
    expect([method, target, body]).toEqual(["POST", "/orders?draft", "one"]);
    expect(lines).toMatchObject({ "x-kind": "big", "underpass-replay": id });
    expect(lines).not.toHaveProperty("authorization");
    const event = await lastCapture(tunnel);
    expect(outcome).toEqual({ id: event.id });
    expect(event).toMatchObject({ replay_of: id, status: 200, state: "complete", path: "/orders" });
    expect(decodeBase64Text(event.response_body)).toBe("again");
    expect(await listCaptures(tunnel)).toHaveLength(2);
  });

  test("has the requested changes and the matching content length", async () => {
    const { tunnel, agent } = await createReplayable();
    const id = await captureOrder(tunnel, agent);
    const { method, target, lines, body } = await answerReplay(tunnel, agent, id, {
      method: "PUT",
      path: "/other",
      query: null,
      headers: { "X-Kind": null, "X-New": "1" },
      body: new TextEncoder().encode("changed"),
    });
    expect([method, target, body]).toEqual(["PUT", "/other", "changed"]);
    expect(lines).toMatchObject({ "x-new": "1", "content-length": "7" });
    expect(lines).not.toHaveProperty("x-kind");
  });

  test("is refused when the owner does not allow replays, and when it does not exist", async () => {
    const { tunnel, agent } = await createReplayable();
    const id = await captureOrder(tunnel, agent);
    expect(await tunnel.stub.replay(crypto.randomUUID())).toEqual({ refused: "not_found" });
    await setCaptureSettings(tunnel, { allowReplay: false });
    expect(await tunnel.stub.replay(id)).toEqual({ refused: "replay_disabled" });
    expect(agent.pendingFrames).toBe(0);
  });

  test("is refused while no agent is connected", async () => {
    const { tunnel, agent } = await createReplayable();
    const id = await captureOrder(tunnel, agent);
    await tunnel.stub.revokeToken("token-a");
    expect(await tunnel.stub.replay(id)).toEqual({ refused: "agent_offline" });
  });

  test("is refused when its body was cut or never read, unless a new body is given", async () => {
    const { tunnel, agent } = await createReplayable();
    const answer = tunnel.visit("/", {
      method: "POST",
      body: "x".repeat(BODY_CAPTURE_MAX_BYTES + 1),
    });
    const { stream } = await agent.nextRequest();
    while (!(await agent.nextData()).isLast);
    agent.respond(stream, 200, [], "");
    await (await answer).text();
    const { id } = await lastCapture(tunnel);
    expect(await tunnel.stub.replay(id)).toEqual({ refused: "cut" });
    const edits = { body: new TextEncoder().encode("given") };
    expect((await answerReplay(tunnel, agent, id, edits)).body).toBe("given");
  });

  test("is refused if it is a WebSocket", async () => {
    const { tunnel, agent } = await createReplayable();
    const { socket } = await tunnel.visitorSocket(agent);
    const { id } = await lastCapture(tunnel);
    expect(await tunnel.stub.replay(id)).toEqual({ refused: "not_replayable" });
    socket.socket.close(1000);
    await agent.next(FRAME.close);
  });

  test("passes the tunnel's gates, which belong to the sender of the replay", async () => {
    const { tunnel, agent } = await createReplayable();
    await completeVisit(tunnel, agent, "/admin");
    const { id } = await lastCapture(tunnel);
    const actions = [{ kind: "deny" as const, path_prefix: "/admin" }];
    await tunnel.stub.publishAccessSettings({
      version: 1,
      realm: "shop",
      basicAuth: null,
      policy: { actions },
    });
    const outcome = tunnel.stub.replay(id);
    agent.respond((await agent.nextRequest()).stream, 204);
    await outcome;
    expect(await lastCapture(tunnel)).toMatchObject({ status: 204, replay_of: id });
  });
});
