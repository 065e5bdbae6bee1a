/** Captured requests on a whole server: what its owner says of them, and what becomes of them. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { CaptureEvent } from "../../../protocol/schemas/inspector/captures.ts";
import { startLocalSite, type LocalSite } from "../../harness/tunnel/local-site.ts";
import { basic, startTunnelOwner, type TunnelOwner } from "../../harness/tunnel/owned-tunnel.ts";
import { inspect, inspectedWhen, inspectOne } from "../../harness/tunnel/visited-tunnel.ts";

let site: LocalSite;
let world: TunnelOwner;
beforeAll(async () => {
  site = await startLocalSite();
  world = await startTunnelOwner();
});
afterAll(async () => {
  await world?.stop();
  await site?.[Symbol.asyncDispose]();
});

const DEFAULTS = {
  capture: true,
  redactHeaders: ["authorization", "cookie", "set-cookie", "proxy-authorization"],
  allowReplay: false,
  bodies: true,
};

describe("what is kept of a tunnel's requests", () => {
  test("is everything but secrets, until its owner says otherwise", async () => {
    const { owner } = world;
    const tunnel = await world.expose("captured", site.port);
    const { id } = tunnel;
    const path = `/tunnels/${id}/inspector`;
    expect((await owner.get(path)).body).toEqual({ id, ...DEFAULTS });
    const wanted = { capture: false, redactHeaders: ["X-Key", "x-key"], allowReplay: true };
    const kept = { id, bodies: true, ...wanted, redactHeaders: ["x-key"] };
    expect(await tunnel.put("inspector", wanted)).toMatchObject({ status: 200, body: kept });
    expect((await owner.get(path)).body).toEqual(kept);
    await tunnel.put("inspector", {});
    expect((await owner.get(path)).body).toEqual({ id, ...DEFAULTS });
    const events = await owner.get<object[]>("/events?action=tunnel_inspector_set");
    expect(events.body).toHaveLength(2);
  });

  test("is not what no header can be called, nor too many of them", async () => {
    const tunnel = await world.expose("refused", site.port);
    for (const redactHeaders of [
      ["a b"],
      [""],
      ["x:"],
      Array.from({ length: 101 }, (_, i) => `x${i}`),
    ]) {
      expect(await tunnel.put("inspector", { redactHeaders })).toMatchObject({ status: 400 });
    }
  });
});

/** The only one of a tunnel, when it is over. */
async function onlyCapture(tunnel_id: string): Promise<CaptureEvent> {
  const [summary] = await inspectedWhen(world.owner, { tunnel_id }, 1);
  return inspectOne(world.owner, summary!.id);
}

describe("what goes through a tunnel is captured", () => {
  test("a WebSocket, message by message, until it is closed", async () => {
    const { id } = await world.expose("chat", site.port);
    const { port } = world.api.server;
    const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`, {
      headers: { host: `chat.localhost:${port}` },
    });
    await once(socket, "open");
    for (const message of ["one", Buffer.from([1, 2, 3])]) {
      socket.send(message);
      await once(socket, "message");
    }
    socket.close(4001, "enough");
    await once(socket, "close");
    const { frames, ...event } = await onlyCapture(id);
    expect(event).toMatchObject({ kind: "websocket", status: 101, state: "complete" });
    expect(event).toMatchObject({ request_size: 6, response_size: 6, frames_total: 5 });
    expect(frames.map(({ from, kind, size }) => [from, kind, size])).toEqual([
      ["client", "text", 3],
      ["server", "text", 3],
      ["client", "binary", 3],
      ["server", "binary", 3],
      ["client", "close", 8],
    ]);
  });

  test("an event stream, event by event", async () => {
    const tunnel = await world.expose("ticks", site.port);
    await tunnel.visit("/events");
    const { events, ...event } = await onlyCapture(tunnel.id);
    expect(event).toMatchObject({ kind: "sse", status: 200, state: "complete", events_total: 3 });
    expect(events.map(({ event, data }) => [event, data])).toEqual([
      ["tick", "first"],
      ["tick", "second"],
      ["tick", "last"],
    ]);
  });

  test("also what the edge refused, without what it was refused for", async () => {
    const tunnel = await world.expose("shut", site.port);
    await tunnel.put("auth", { username: "eve", password: "open sesame" });
    // The second is judged by the edge, which has heard of the gate by then.
    for (const password of ["wrong one", "wrong two"]) {
      expect((await tunnel.visit("/", basic("eve", password))).status).toBe(401);
    }
    const captures = await inspectedWhen(world.owner, { tunnel_id: tunnel.id }, 2);
    for (const { id } of captures) {
      const event = await inspectOne(world.owner, id);
      expect(event).toMatchObject({ status: 401, state: "refused", error: "unauthorized" });
      expect(event.request_headers.authorization).toBe("[redacted]");
      expect(JSON.stringify(event.request_headers)).not.toContain("underpass");
    }
  });

  test("and is there after a kill -9, once it could be read before", async () => {
    const tunnel = await world.expose("crash", site.port);
    const query = { tunnel_id: tunnel.id };
    for (let i = 0; i < 20; i += 1) await tunnel.visit(`/${i}`);
    const before = await inspectedWhen(world.owner, query, 20);
    const reconnected = once(tunnel.agent.events, "reconnected");
    process.kill(await world.api.server.getPid("workerd"), "SIGKILL");
    await reconnected;
    expect((await inspect(world.owner, query)).body).toEqual(before);
    await tunnel.visit("/after");
    const after = await inspectedWhen(world.owner, query, 21);
    expect(after[0]!.path).toBe("/after");
  });
});
