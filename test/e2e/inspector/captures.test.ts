/** Captured requests on a complete server: their settings, contents and durability. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";
import { startLocalSite, type LocalSite } from "../../harness/tunnel/local-site.ts";
import {
  basicAuthorization,
  startTunnelOwner,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { listCaptures, waitForCaptures, getCapture } from "../../harness/tunnel/visited-tunnel.ts";

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
  serverAllowsReplay: false,
};

describe("a tunnel's capture settings", () => {
  test("capture everything but secrets by default, and can be changed and reset", async () => {
    const { owner } = world;
    const tunnel = await world.expose("captured-site", site.port);
    const { id } = tunnel;
    const path = `/tunnels/${id}/inspector`;
    expect((await owner.get(path)).body).toEqual({ id, ...DEFAULTS });
    const change = { capture: false, redactHeaders: ["X-Key", "x-key"], allowReplay: true };
    const changed = { id, ...DEFAULTS, ...change, redactHeaders: ["x-key"] };
    expect(await tunnel.put("inspector", change)).toMatchObject({ status: 200, body: changed });
    expect((await owner.get(path)).body).toEqual(changed);
    await tunnel.put("inspector", {});
    expect((await owner.get(path)).body).toEqual({ id, ...DEFAULTS });
    const events = await owner.get<object[]>("/events?action=tunnel_inspector_set");
    expect(events.body).toHaveLength(2);
  });

  test("accept only valid header names, and not too many", async () => {
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

/** Waits until the tunnel's only capture has ended. */
async function waitForOnlyCapture(tunnel_id: string): Promise<CaptureDetail> {
  const [summary] = await waitForCaptures(world.owner, { tunnel_id }, 1);
  return getCapture(world.owner, summary!.id);
}

describe("a capture", () => {
  test("of a WebSocket has each message until it is closed", async () => {
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
    const { frames, ...event } = await waitForOnlyCapture(id);
    expect(event).toMatchObject({ kind: "websocket", status: 101, state: "complete" });
    expect(event).toMatchObject({ request_size: 6, response_size: 6, frames_total: 6 });
    expect(frames.map(({ from, kind, size }) => [from, kind, size])).toEqual([
      ["client", "text", 3],
      ["server", "text", 3],
      ["client", "binary", 3],
      ["server", "binary", 3],
      ["client", "close", 8],
      ["server", "close", 8],
    ]);
  });

  test("of an event stream has each event", async () => {
    const tunnel = await world.expose("ticks", site.port);
    await tunnel.visit("/events");
    const { events, ...event } = await waitForOnlyCapture(tunnel.id);
    expect(event).toMatchObject({ kind: "sse", status: 200, state: "complete", events_total: 3 });
    expect(events.map(({ event, data }) => [event, data])).toEqual([
      ["tick", "first"],
      ["tick", "second"],
      ["tick", "last"],
    ]);
  });

  test("includes requests that the edge refused, without the wrong password", async () => {
    const tunnel = await world.expose("shut", site.port);
    await tunnel.put("auth", { username: "eve", password: "open sesame" });
    // The edge authorizes the second request itself: the first response carried the gate.
    for (const password of ["wrong one", "wrong two"]) {
      expect((await tunnel.visit("/", basicAuthorization("eve", password))).status).toBe(401);
    }
    const captures = await waitForCaptures(world.owner, { tunnel_id: tunnel.id }, 2);
    for (const { id } of captures) {
      const event = await getCapture(world.owner, id);
      expect(event).toMatchObject({ status: 401, state: "refused", error: "unauthorized" });
      expect(event.refused_by).toBe("password");
      expect(event.request_headers.authorization).toBeUndefined();
      expect(JSON.stringify(event.request_headers)).not.toContain("underpass");
    }
  });

  test("names the gate or the rule that refused it", async () => {
    const tunnel = await world.expose("refused-by-gates", site.port);
    const query = { tunnel_id: tunnel.id };
    const readNewest = async (count: number) => {
      const [newest] = await waitForCaptures(world.owner, query, count);
      return (await getCapture(world.owner, newest!.id)).refused_by;
    };
    await tunnel.visit("/open");
    expect(await readNewest(1)).toBeNull();
    const actions = [
      { kind: "deny", path_prefix: "/admin" },
      { kind: "rate_limit", requests_per_minute: 1 },
    ];
    await tunnel.put("policy", { actions });
    await tunnel.visit("/admin");
    expect(await readNewest(2)).toBe("deny");
    for (let visits = 0; visits < 2; visits += 1) await tunnel.visit("/often");
    expect(await readNewest(4)).toBe("rate_limit");
    await tunnel.put("ip-allowlist", { cidrs: ["192.0.2.0/24"] });
    await tunnel.visit("/elsewhere");
    expect(await readNewest(5)).toBe("ip_allowlist");
  });

  test("that could be read before a kill -9 can be read after it", async () => {
    const tunnel = await world.expose("crash", site.port);
    const query = { tunnel_id: tunnel.id };
    for (let i = 0; i < 20; i += 1) await tunnel.visit(`/${i}`);
    const before = await waitForCaptures(world.owner, query, 20);
    const reconnected = once(tunnel.agent.events, "reconnected");
    process.kill(await world.api.server.getPid("workerd"), "SIGKILL");
    await reconnected;
    expect((await listCaptures(world.owner, query)).body).toEqual(before);
    await tunnel.visit("/after");
    const after = await waitForCaptures(world.owner, query, 21);
    expect(after[0]!.path).toBe("/after");
  });
});
