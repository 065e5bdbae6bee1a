import { runInDurableObject } from "cloudflare:test";
import { describe, expect, test } from "vitest";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import {
  parseCodeAndText,
  parseCredit,
  FLAG,
  FRAME,
  RESET,
} from "../../../../protocol/wire/frames.ts";
import {
  RESPONSE_HEAD_MAX_BYTES,
  RESPONSE_HEADERS_MAX,
  STREAM_RESERVE_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../../../protocol/limits.ts";
import { getRefusalMessage } from "../../../../access/refusal.ts";
import { LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";

const readErrorCode = async (answer: Response | Promise<Response>) =>
  (await answer).headers.get("underpass-error");

function reading(body: ReadableStream | null) {
  return body!
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
}

describe("a request", () => {
  test("reaches the agent unchanged, and the visitor gets the agent's response", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const pending = tunnel.visit("/a//b%2f?c=%zz", { headers: { "x-test": "1" } });
    const request = await agent.nextRequest();
    expect(request).toMatchObject({ method: "GET", target: "/a//b%2f?c=%zz", flags: FLAG.end });
    expect(request.pairs.join(" ")).toContain("x-test 1");
    agent.respond(request.stream, 418, ["x-answer", "2"], "short and stout");
    const answer = await pending;
    expect([answer.status, answer.headers.get("x-answer")]).toEqual([418, "2"]);
    expect(await answer.text()).toBe("short and stout");
  });

  test("streams its body before it is complete", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const answer = tunnel.visit("/", { method: "POST", body: readable });
    const { stream, flags } = await agent.nextRequest();
    expect(flags).toBe(0);
    for (const text of ["one", "two"]) {
      void writer.write(new TextEncoder().encode(text));
      expect(await agent.nextData()).toEqual({ text, isLast: false });
    }
    void writer.close();
    expect(await agent.nextData()).toEqual({ text: "", isLast: true });
    agent.respond(stream, 204);
    expect((await answer).status).toBe(204);
  });

  test("is canceled at the agent when its visitor disconnects", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const visitor = new AbortController();
    const answer = tunnel.visit("/", { signal: visitor.signal });
    const { stream } = await agent.nextRequest();
    visitor.abort();
    await expect(answer).rejects.toThrow();
    expect(await agent.nextCode(FRAME.reset)).toMatchObject({ stream, code: RESET.canceled });
  });

  test("is not sent to the agent when its visitor has already disconnected", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const request = new Request("http://shop.localhost/left", { signal: AbortSignal.abort() });
    const { status } = await runInDurableObject(tunnel.stub, (object) => object.fetch(request));
    expect(status).toBe(502);
    expect(agent.pendingFrames).toBe(0);
  });

  test("that is answered early ends at once, and is not read to its end", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const answer = tunnel.visit("/", { method: "POST", body: readable });
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 413, [], "too much");
    expect(await (await answer).text()).toBe("too much");
    expect(await agent.nextCode(FRAME.reset)).toMatchObject({ stream, code: RESET.canceled });
    await writable.abort().catch(() => undefined);
  });

  test("whose response is invalid ends at once, and sends no more of its body", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const body = new Uint8Array(2 * STREAM_WINDOW_BYTES);
    const answer = tunnel.visit("/", { method: "POST", body });
    const { stream } = await agent.nextRequest();
    for (let sent = 0; sent < STREAM_WINDOW_BYTES;)
      sent += (await agent.next(FRAME.data)).payload.byteLength;
    agent.respond(stream, 999);
    expect(await readErrorCode(answer)).toBe("origin_failed");
    expect(await agent.nextCode(FRAME.reset)).toMatchObject({ stream, code: RESET.protocolError });
    const next = tunnel.visit("/next");
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await next).status).toBe(204);
  });
});

describe("a response", () => {
  test("streams to the visitor chunk by chunk", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200, ["content-type", "text/html"]);
    const reader = reading((await answer).body);
    for (const text of ["<p>one", "<p>two", "<p>three"]) {
      agent.send((writer) => writer.writeText(FRAME.data, 0, stream, text));
      expect((await reader.read()).value).toBe(text);
    }
    agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, ""));
    expect((await reader.read()).done).toBe(true);
  });

  test("of known length that is truncated never looks complete", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200, ["content-length", "10"]);
    agent.send((writer) => {
      writer.writeText(FRAME.data, 0, stream, "half.");
      writer.writeCodeAndText(FRAME.reset, stream, RESET.originFailed, "");
    });
    await expect((await answer).text()).rejects.toThrow();
  });

  test("whose length is wrong is a failure, and the next one is not", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    for (const body of ["four", "sixsix"]) {
      const answer = tunnel.visit("/");
      agent.respond((await agent.nextRequest()).stream, 200, ["content-length", "5"], body);
      expect(await readErrorCode(answer)).toBe("origin_failed");
    }
    const answer = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 200, ["content-length", "5"], "fives");
    expect(await (await answer).text()).toBe("fives");
  });

  test.each([
    ["a status above HTTP's", 600, []],
    ["a status below HTTP's", 99, []],
    ["an interim status", 103, []],
    ["a switch of protocols", 101, []],
    ["a header name that is none", 200, ["a b", "c"]],
    ["an empty header name", 200, ["", "c"]],
    ["a header value that is none", 200, ["a", "b\r\nc: d"]],
  ])("with %s is a failure of the local server", async (_, status, pairs) => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, status, pairs, "body");
    expect((await answer).status).toBe(502);
    expect(await readErrorCode(answer)).toBe("origin_failed");
  });

  test.each([
    ["more headers", Array.from({ length: RESPONSE_HEADERS_MAX + 1 }, () => ["z", ""]).flat()],
    ["more bytes of headers", ["z", "a".repeat(RESPONSE_HEAD_MAX_BYTES)]],
  ])("with %s than a head may have is refused, and the connection goes on", async (_, pairs) => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    for (const upgrade of [undefined, "websocket"]) {
      const answer = tunnel.visit("/", upgrade ? { headers: { upgrade } } : {});
      const { stream } = await agent.nextRequest();
      agent.respond(stream, upgrade ? 101 : 200, pairs, upgrade ? undefined : "body");
      expect([(await answer).status, await readErrorCode(answer)]).toEqual([502, "origin_failed"]);
      expect(getRefusalMessage(await answer)).toContain("256 headers");
      expect(await agent.nextCode(FRAME.reset)).toMatchObject({ stream, code: RESET.tooLarge });
    }
    const answer = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 200, [], "served");
    expect(await (await answer).text()).toBe("served");
  });

  test.each([
    [RESET.originUnreachable, 502, "origin_unreachable"],
    [RESET.originTimeout, 504, "origin_timeout"],
    [RESET.originFailed, 502, "origin_failed"],
    [RESET.protocolError, 502, "origin_failed"],
    [999, 502, "origin_failed"],
  ])("that is replaced by the reset %i is a %i %s", async (code, status, error) => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/", { method: "POST", body: "x" });
    const { stream } = await agent.nextRequest();
    agent.send((writer) => writer.writeCodeAndText(FRAME.reset, stream, code, "why"));
    expect((await answer).status).toBe(status);
    expect(await readErrorCode(answer)).toBe(error);
  });

  test("cannot imitate an error of this service", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    const pairs = ["Underpass-Error", "tunnel_not_found"];
    agent.respond((await agent.nextRequest()).stream, 404, pairs, "mine");
    expect(await readErrorCode(answer)).toBeNull();
  });

  test("to HEAD, and with 204, 205 and 304, has no body and leaves nothing behind", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const cases = [
      ["HEAD", 200],
      ["GET", 204],
      ["GET", 205],
      ["GET", 304],
    ] as const;
    for (const [method, status] of cases) {
      const answer = tunnel.visit("/", { method });
      const { stream } = await agent.nextRequest();
      agent.respond(stream, status, ["content-length", "1000000"]);
      agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, ""));
      expect((await answer).status).toBe(status);
      expect(await (await answer).text()).toBe("");
    }
  });

  test("to HEAD is reset when the agent sends a body without end", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/", { method: "HEAD" });
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200);
    expect((await answer).status).toBe(200);
    const part = new Uint8Array(STREAM_WINDOW_BYTES / 4);
    for (let sent = 0; sent < 8; sent++) {
      agent.send((writer) => writer.writeBytes(FRAME.data, 0, stream, part));
      if (sent < 5) await agent.next(FRAME.credit);
    }
    expect(parseCodeAndText((await agent.next(FRAME.reset)).payload)?.code).toBe(RESET.canceled);
  });
});

describe("when the agent is lost or replaced", () => {
  test("a request that may be repeated is sent to the next agent, once", async () => {
    const tunnel = new LiveTunnel();
    const first = await tunnel.agent();
    const answer = tunnel.visit("/again", { headers: { "x-nonce": "1" } });
    await first.nextRequest();
    const second = await tunnel.agent();
    const request = await second.nextRequest();
    expect(request.target).toBe("/again");
    const third = await tunnel.agent();
    expect((await second.closed).code).toBe(CLOSE.replaced);
    expect(await readErrorCode(answer)).toBe("agent_offline");
    expect(third.pendingFrames).toBe(0);
  });

  test.each([
    ["POST", undefined],
    ["PATCH", undefined],
    ["POST", "body"],
    ["PUT", "body"],
  ])("a %s with the body %s reaches a local server at most once", async (method, body) => {
    const tunnel = new LiveTunnel();
    const first = await tunnel.agent();
    const answer = tunnel.visit("/", { method, body });
    await first.nextRequest();
    const second = await tunnel.agent();
    expect(await readErrorCode(answer)).toBe("agent_offline");
    const probe = tunnel.visit("/probe");
    const request = await second.nextRequest();
    expect(request.target).toBe("/probe");
    second.respond(request.stream, 204);
    await probe;
  });

  test("a response that has begun is truncated, and not requested again", async () => {
    const tunnel = new LiveTunnel();
    const first = await tunnel.agent();
    const answer = tunnel.visit("/");
    const { stream } = await first.nextRequest();
    first.respond(stream, 200, ["content-length", "100"]);
    const { body } = await answer;
    const second = await tunnel.agent();
    await expect(new Response(body).text()).rejects.toThrow();
    expect(second.pendingFrames).toBe(0);
  });

  test("a request that an agent refused goes to the next one, whatever its method", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/", { method: "DELETE" });
    const first = await agent.nextRequest();
    agent.send((writer) =>
      writer.writeCodeAndText(FRAME.reset, first.stream, RESET.refused, "leaving"),
    );
    const second = await agent.nextRequest();
    expect(second).toMatchObject({ method: "DELETE", target: "/" });
    agent.respond(second.stream, 204);
    expect((await answer).status).toBe(204);
  });
});

describe("windows", () => {
  async function streaming(pairs: string[] = []) {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200, pairs);
    return { tunnel, agent, stream, answer: await answer };
  }

  function sendBytes(agent: TestAgent, stream: number, bytes: number): void {
    const chunk = new Uint8Array(64 * 1024);
    for (let sent = 0; sent < bytes; sent += chunk.byteLength) {
      agent.send((w) => w.writeBytes(FRAME.data, 0, stream, chunk.subarray(0, bytes - sent)));
    }
  }

  async function expectGranted(agent: TestAgent, bytes: number): Promise<void> {
    let granted = 0;
    while (granted < bytes) granted += parseCredit((await agent.next(FRAME.credit)).payload)!;
    expect(granted).toBe(bytes);
  }

  test("do not delay bytes that fit into them", async () => {
    const { agent, stream, answer } = await streaming();
    sendBytes(agent, stream, STREAM_WINDOW_BYTES);
    agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, ""));
    expect((await answer.arrayBuffer()).byteLength).toBe(STREAM_WINDOW_BYTES);
  });

  test("close the connection of an agent that exceeds them by a byte", async () => {
    const { agent, stream, answer } = await streaming();
    sendBytes(agent, stream, STREAM_WINDOW_BYTES + 1);
    expect((await agent.closed).code).toBe(CLOSE.protocol_error);
    await answer.body?.cancel();
  });

  test("are granted again as the visitor reads, completely in the end", async () => {
    const { agent, stream, answer } = await streaming();
    sendBytes(agent, stream, STREAM_WINDOW_BYTES);
    agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, ""));
    await answer.arrayBuffer();
    await expectGranted(agent, STREAM_WINDOW_BYTES);
  });

  test("are granted again when the visitor disconnects from a response that was sent completely", async () => {
    const { tunnel, agent, stream, answer } = await streaming();
    sendBytes(agent, stream, STREAM_WINDOW_BYTES);
    agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, ""));
    const next = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 204);
    await next;
    const reader = answer.body!.getReader();
    await reader.read();
    await reader.cancel();
    await expectGranted(agent, STREAM_WINDOW_BYTES);
  });

  test.each([
    ["a body where none belongs", 205, []],
    ["another length than declared", 200, ["content-length", "7"]],
    ["a head that is no HTTP", 999, []],
  ])("are granted again when a response has %s", async (_, status, pairs) => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    const body = "x".repeat(2 * STREAM_RESERVE_BYTES);
    agent.respond(stream, status, pairs, body);
    await answer;
    await expectGranted(agent, body.length);
  });

  test("pause an upload that the agent does not read, and continue it with its credit", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const body = new Uint8Array(STREAM_WINDOW_BYTES + 5);
    const answer = tunnel.visit("/", { method: "POST", body });
    const { stream } = await agent.nextRequest();
    let received = 0;
    while (received < STREAM_WINDOW_BYTES)
      received += (await agent.next(FRAME.data)).payload.byteLength;
    expect(received).toBe(STREAM_WINDOW_BYTES);
    agent.send((writer) => writer.writeCredit(stream, 3));
    expect((await agent.next(FRAME.data)).payload.byteLength).toBe(3);
    agent.send((writer) => writer.writeCredit(stream, 3));
    expect((await agent.next(FRAME.data)).payload.byteLength).toBe(2);
    expect((await agent.nextData()).isLast).toBe(true);
    agent.respond(stream, 204);
    await answer;
  });
});
