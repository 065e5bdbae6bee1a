import { runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { getTunnelSuffixOfCapture, getTunnelSuffix } from "../../../../protocol/captures/id.ts";
import { FLAG, FRAME, RESET } from "../../../../protocol/wire/frames.ts";
import { SIGN_IN_TICKET_PATH } from "../../../../access/identity.ts";
import { BODY_CAPTURE_MAX_BYTES } from "../../../../durable-objects/tunnel/captures/body.ts";
import { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { ANN, AUTH, publish } from "../../../harness/workerd/gated-tunnel.ts";
import {
  listCaptures,
  lastCapture,
  setCaptureSettings,
  decodeBase64Text,
  completeVisit,
  getCapture,
} from "../../../harness/workerd/live-captures.ts";
import { bindings, LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

async function createServed() {
  const tunnel = new LiveTunnel();
  return { tunnel, agent: await tunnel.agent() };
}

test("the newest captures of a period are counted, up to a limit", async () => {
  const { tunnel, agent } = await createServed();
  const startedAtMs = Date.now();
  for (const path of ["/old", "/hot", "/hot"]) await completeVisit(tunnel, agent, path);
  expect(await tunnel.stub.breakDownCaptures(startedAtMs, 3)).toMatchObject({
    requests: 3,
    isComplete: true,
    statuses: { "2xx": 3 },
    paths: [
      { path: "/hot", requests: 2, failed: 0, answered: 2 },
      { path: "/old", requests: 1 },
    ],
  });
  const newest = await tunnel.stub.breakDownCaptures(startedAtMs, 2);
  expect(newest).toMatchObject({ requests: 2, isComplete: false, paths: [{ path: "/hot" }] });
  const none = await tunnel.stub.breakDownCaptures(Date.now() + 1_000, 2);
  expect(none).toMatchObject({ requests: 0, isComplete: true, paths: [] });
});

describe("a request is captured", () => {
  test("with the headers, bodies, sizes and times of request and response", async () => {
    const { tunnel, agent } = await createServed();
    const answer = tunnel.visit("/a%20b/?x=1&y=", {
      method: "POST",
      body: "order",
      headers: { "x-kind": "big" },
    });
    const { stream } = await agent.nextRequest();
    while (!(await agent.nextData()).isLast);
    agent.respond(stream, 201, ["Content-Type", "text/plain", "X-A", "1", "X-A", "2"], "made");
    await (await answer).text();
    const event = await lastCapture(tunnel);
    expect(CaptureDetail.parse(event)).toMatchObject({
      tunnel_id: tunnel.id,
      method: "POST",
      path: "/a%20b/",
      query: "x=1&y=",
      status: 201,
      request_size: 5,
      response_size: 4,
      kind: "http",
      state: "complete",
      error: null,
      replay_of: null,
      truncated: { request: false, response: false, request_head: false, response_head: false },
    });
    expect(getTunnelSuffixOfCapture(event.id)).toBe(getTunnelSuffix(tunnel.id));
    expect([decodeBase64Text(event.request_body), decodeBase64Text(event.response_body)]).toEqual([
      "order",
      "made",
    ]);
    expect(event.request_headers["x-kind"]).toBe("big");
    expect(event.response_headers).toEqual({ "content-type": "text/plain", "x-a": "1, 2" });
    expect(event.duration_ms).toBeGreaterThanOrEqual(event.latency_ms!);
  });

  test("with an empty query when there is only a question mark, and null when there is none", async () => {
    const { tunnel, agent } = await createServed();
    await completeVisit(tunnel, agent, "/?");
    expect(await lastCapture(tunnel)).toMatchObject({ path: "/", query: "" });
    await completeVisit(tunnel, agent, "/");
    expect(await lastCapture(tunnel)).toMatchObject({ path: "/", query: null });
  });

  test("without the ticket of a visitor's sign-in, which its readers could use", async () => {
    const { tunnel, agent } = await createServed();
    await completeVisit(tunnel, agent, `${SIGN_IN_TICKET_PATH}?ticket=v1.secret`);
    const captured = await lastCapture(tunnel);
    expect(captured).toMatchObject({ path: SIGN_IN_TICKET_PATH, query: "[redacted]" });
    expect(JSON.stringify(captured)).not.toContain("secret");
  });

  test("also when no agent was connected", async () => {
    const tunnel = new LiveTunnel();
    expect((await tunnel.visit("/nobody")).status).toBe(502);
    expect(await lastCapture(tunnel)).toMatchObject({
      path: "/nobody",
      status: 502,
      state: "failed",
      error: "agent_offline",
    });
  });

  test("also when the local server was unreachable", async () => {
    const { tunnel, agent } = await createServed();
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.send((writer) =>
      writer.writeCodeAndText(FRAME.reset, stream, RESET.originUnreachable, "no"),
    );
    await answer;
    expect(await lastCapture(tunnel)).toMatchObject({
      status: 502,
      state: "failed",
      error: "origin_unreachable",
    });
  });

  test("also when its response broke off, with the received part", async () => {
    const { tunnel, agent } = await createServed();
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.send((writer) => {
      writer.writeJson(FRAME.response, 0, stream, [200, "content-length", "10"]);
      writer.writeText(FRAME.data, 0, stream, "half");
    });
    const { body } = await answer;
    agent.send((writer) =>
      writer.writeCodeAndText(FRAME.reset, stream, RESET.originFailed, "broke"),
    );
    await expect(new Response(body).text()).rejects.toThrow();
    const event = await lastCapture(tunnel);
    expect(event).toMatchObject({ status: 200, state: "failed", error: "origin_failed" });
    expect(event.truncated.response).toBe(true);
    expect(decodeBase64Text(event.response_body)).toBe("half");
  });

  test("also when its response was not valid HTTP", async () => {
    const { tunnel, agent } = await createServed();
    const answer = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 200, ["content-length", "9"], "short");
    expect((await answer).status).toBe(502);
    expect(await lastCapture(tunnel)).toMatchObject({ state: "failed", error: "origin_failed" });
  });

  test("also when the visitor disconnected", async () => {
    const { tunnel, agent } = await createServed();
    const leaving = new AbortController();
    const answer = tunnel.visit("/", { signal: leaving.signal });
    const { stream } = await agent.nextRequest();
    agent.send((writer) => writer.writeJson(FRAME.response, 0, stream, [200]));
    await answer;
    leaving.abort();
    await agent.nextCode(FRAME.reset);
    expect(await lastCapture(tunnel)).toMatchObject({ status: 200, state: "aborted" });
  });

  test("also when it was refused, without the body that was never read", async () => {
    const { tunnel, agent } = await createServed();
    await tunnel.stub.publishAccessSettings({
      version: 1,
      realm: "shop",
      basicAuth: null,
      policy: { actions: [{ kind: "deny", path_prefix: "/admin" }] },
    });
    const answer = await tunnel.visit("/admin", { method: "POST", body: "secret" });
    expect(answer.status).toBe(403);
    const event = await lastCapture(tunnel);
    expect(event).toMatchObject({ status: 403, state: "refused", error: "forbidden" });
    expect(event).toMatchObject({ truncated: { request: true, response: true } });
    expect(agent.pendingFrames).toBe(0);
  });

  test("also when its password could not be checked", async () => {
    const { tunnel } = await createServed();
    // These tests run without Argon2.
    await publish(tunnel, [], AUTH);
    await expect(tunnel.visit("/", { headers: ANN })).rejects.toThrow();
    expect(await lastCapture(tunnel)).toMatchObject({ state: "failed", error: "internal" });
  });

  test("with a cut body if it is too long, marked as cut, and with its full size", async () => {
    const { tunnel, agent } = await createServed();
    const whole = "x".repeat(BODY_CAPTURE_MAX_BYTES);
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.send((writer) => {
      writer.writeJson(FRAME.response, 0, stream, [200]);
      for (let at = 0; at < whole.length; at += 64 * 1024) {
        writer.writeText(FRAME.data, 0, stream, whole.slice(at, at + 64 * 1024));
      }
      writer.writeText(FRAME.data, FLAG.end, stream, "!");
    });
    await (await answer).text();
    const event = await lastCapture(tunnel);
    expect(event.response_size).toBe(whole.length + 1);
    expect(event.truncated).toEqual({
      request: false,
      response: true,
      request_head: false,
      response_head: false,
    });
    expect(decodeBase64Text(event.response_body) === whole).toBe(true);
  });

  test("while it is open, with the part that was received so far", async () => {
    const { tunnel, agent } = await createServed();
    const answer = tunnel.visit("/slow");
    const { stream } = await agent.nextRequest();
    expect(await listCaptures(tunnel)).toMatchObject([{ state: "open", status: null }]);
    agent.send((writer) => {
      writer.writeJson(FRAME.response, 0, stream, [200]);
      writer.writeText(FRAME.data, 0, stream, "begun");
    });
    const { body } = await answer;
    await vi.waitUntil(async () => (await lastCapture(tunnel)).response_size === 5, WAIT_OPTIONS);
    expect(decodeBase64Text((await lastCapture(tunnel)).response_body)).toBe("begun");
    agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, ", done"));
    await new Response(body).text();
    expect(await lastCapture(tunnel)).toMatchObject({ state: "complete", response_size: 11 });
    expect(await listCaptures(tunnel)).toHaveLength(1);
  });

  test("once, however often it was sent to an agent", async () => {
    const { tunnel, agent } = await createServed();
    const answer = tunnel.visit("/");
    await agent.nextRequest();
    const next = await tunnel.agent();
    next.respond((await next.nextRequest()).stream, 204);
    expect((await answer).status).toBe(204);
    expect(await listCaptures(tunnel)).toMatchObject([{ status: 204, state: "complete" }]);
  });
});

describe("the owner's settings", () => {
  test("turn captures off from the next request on, until they are turned on again", async () => {
    const { tunnel, agent } = await createServed();
    await setCaptureSettings(tunnel, { capture: false });
    await completeVisit(tunnel, agent);
    await tunnel.sleep();
    await completeVisit(tunnel, agent);
    expect(await listCaptures(tunnel)).toEqual([]);
    await setCaptureSettings(tunnel, { capture: true });
    await completeVisit(tunnel, agent);
    expect(await listCaptures(tunnel)).toHaveLength(1);
  });

  test("omit bodies, but not their sizes and that they are missing", async () => {
    const { tunnel, agent } = await createServed();
    await setCaptureSettings(tunnel, { bodies: false });
    await completeVisit(tunnel, agent, "/", "body");
    expect(await lastCapture(tunnel)).toMatchObject({
      response_size: 4,
      response_body: "",
      truncated: { request: false, response: true },
    });
  });

  test("are not changed by an older version that arrives late", async () => {
    const { tunnel, agent } = await createServed();
    await setCaptureSettings(tunnel, { capture: true, version: 1e6 });
    await setCaptureSettings(tunnel, { capture: false });
    await completeVisit(tunnel, agent);
    expect(await listCaptures(tunnel)).toHaveLength(1);
  });
});

describe("captures are listed", () => {
  test("newest first, page by page, each once", async () => {
    const { tunnel, agent } = await createServed();
    const paths = Array.from({ length: 30 }, (_, i) => `/${i}`);
    for (const path of paths) await completeVisit(tunnel, agent, path);
    const listedPaths: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await listCaptures(tunnel, { limit: 7, after });
      if (page.length === 0) break;
      listedPaths.push(...page.map(({ path }) => path));
      after = page.at(-1)!.id;
    }
    expect(listedPaths).toEqual(paths.toReversed());
  });

  test("by method, status, class of status, part of the path, and time", async () => {
    const { tunnel, agent } = await createServed();
    const visit = async (method: string, path: string, status: number) => {
      const answer = tunnel.visit(path, { method });
      agent.respond((await agent.nextRequest()).stream, status, [], "");
      await (await answer).text();
    };
    await visit("GET", "/shop/1", 200);
    await visit("DELETE", "/shop/2", 404);
    await visit("GET", "/cart", 410);
    const paths = async (filter: Parameters<typeof listCaptures>[1]) =>
      (await listCaptures(tunnel, filter)).map(({ path }) => path);
    expect(await paths({ method: "GET" })).toEqual(["/cart", "/shop/1"]);
    expect(await paths({ status: 404 })).toEqual(["/shop/2"]);
    expect(await paths({ status: 4 })).toEqual(["/cart", "/shop/2"]);
    expect(await paths({ path: "shop" })).toEqual(["/shop/2", "/shop/1"]);
    expect(await paths({ sinceMs: Date.now() + 1000 })).toEqual([]);
    expect(await paths({ sinceMs: Date.now() - 60_000, limit: 1 })).toEqual(["/cart"]);
    await visit("purge", "/cache", 200);
    expect(await paths({ method: "PURGE" })).toEqual(["/cache"]);
  });

  test("and found after hibernation", async () => {
    const { tunnel, agent } = await createServed();
    await completeVisit(tunnel, agent, "/stored", "x".repeat(40_000));
    const { id } = await lastCapture(tunnel);
    await tunnel.sleep();
    const event = await getCapture(tunnel.stub, id);
    expect(event).toMatchObject({ path: "/stored", response_size: 40_000 });
    expect(decodeBase64Text(event!.response_body)).toHaveLength(40_000);
    expect(await getCapture(tunnel.stub, crypto.randomUUID())).toBeNull();
  });

  test("without those that were cleared, also when later ones are on the same page", async () => {
    const { tunnel, agent } = await createServed();
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now });
    await completeVisit(tunnel, agent, "/before");
    vi.setSystemTime(now + 10);
    await completeVisit(tunnel, agent, "/after");
    const [after, before] = await listCaptures(tunnel);
    await tunnel.stub.clearCaptures(now);
    expect(await listCaptures(tunnel)).toEqual([after]);
    expect(await getCapture(tunnel.stub, before!.id)).toBeNull();
    // An older call that arrives late changes nothing, and hibernation loses nothing.
    await tunnel.stub.clearCaptures(now - 10);
    await tunnel.sleep();
    expect(await listCaptures(tunnel)).toEqual([after]);
    expect(await getCapture(tunnel.stub, before!.id)).toBeNull();
  });

  test("and an open one that was cleared is found by its id until it ends", async () => {
    const { tunnel, agent } = await createServed();
    const answer = tunnel.visit("/slow");
    const { stream } = await agent.nextRequest();
    const { id } = await lastCapture(tunnel);
    await tunnel.stub.clearCaptures(Date.now());
    agent.respond(stream, 200);
    const { body } = await answer;
    await vi.waitUntil(
      async () => (await getCapture(tunnel.stub, id))?.status === 200,
      WAIT_OPTIONS,
    );
    agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, "done"));
    await new Response(body).text();
  });

  test("completely after the server was stopped and started", async () => {
    const { tunnel, agent } = await createServed();
    await completeVisit(tunnel, agent, "/last");
    await tunnel.stub.drain();
    await runInDurableObject(tunnel.stub, (_, ctx) => ctx.abort("stopped")).catch(() => undefined);
    const restarted = bindings.TUNNEL.getByName(tunnel.id);
    expect(await restarted.listCaptures({ limit: 1 })).toMatchObject([{ path: "/last" }]);
    const reports = rows.reports.filter(({ tunnelId }) => tunnelId === tunnel.id);
    // A report that was being sent when the server stopped may arrive last.
    reports.sort((a, b) => a.sequence - b.sequence);
    expect(reports.at(-1)).toMatchObject({ requests: 1, agentConnected: false });
  });

  test("until they are cleared, and not for a deleted tunnel", async () => {
    const { tunnel, agent } = await createServed();
    await completeVisit(tunnel, agent, "/", "x".repeat(40_000));
    const { id } = await lastCapture(tunnel);
    await tunnel.stub.clearCaptures(Date.now());
    expect([await listCaptures(tunnel), await getCapture(tunnel.stub, id)]).toEqual([[], null]);
    await agent.next(FRAME.credit);
    await completeVisit(tunnel, agent);
    await tunnel.stub.retire();
    expect((await tunnel.visit("/")).status).toBe(404);
    await tunnel.sleep();
    expect((await tunnel.visit("/")).status).toBe(404);
    expect(await listCaptures(tunnel)).toEqual([]);
  });
});
