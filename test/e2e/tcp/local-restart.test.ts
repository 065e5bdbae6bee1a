/** A restart of the local server of a TCP tunnel, as its visitors and the user of the agent see it. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createTemporaryDir } from "../../harness/directories.ts";
import {
  startEcho,
  startLocalServer,
  startTcpStack,
  type TcpStack,
} from "../../harness/relay/tcp/stack.ts";
import { readAll } from "../../harness/relay/tcp/tunnel-port.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

let stack: TcpStack;
beforeAll(async () => {
  stack = await startTcpStack({ address: "127.0.0.1", ports: 8 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

async function echo(socket: Socket, sent: string): Promise<string> {
  socket.end(sent);
  return String(await readAll(socket));
}

test("visitors of the port and of underpass connect wait for it, with what they send meanwhile", async () => {
  const before = await startEcho();
  await using tunnel = await stack.serve(before.port, ["--proxy-protocol", "v1"]);
  await using client = await stack.connect(tunnel.tunnelId);
  expect(await echo(await tunnel.visit(), "before")).toMatch(/^PROXY .*\r\nbefore$/);
  await before[Symbol.asyncDispose]();
  const answers = [echo(await tunnel.visit(), "port"), echo(await client.visit(), "connect")];
  const message = `localhost:${before.port} refuses connections; visitors wait up to 3 s for it`;
  expect(await tunnel.event("notice")).toEqual({ event: "notice", message });
  await using _after = await startEcho(before.port);
  expect(await Promise.all(answers)).toEqual([
    expect.stringMatching(/^PROXY .*\r\nport$/),
    expect.stringMatching(/^PROXY .*\r\nconnect$/),
  ]);
});

test("a visitor who leaves meanwhile is not waited for: the local server never sees the connection", async () => {
  const before = await startEcho();
  await using tunnel = await stack.serve(before.port);
  expect(await echo(await tunnel.visit(), "before")).toBe("before");
  await before[Symbol.asyncDispose]();
  const visitor = await tunnel.visit();
  visitor.write("unread");
  await tunnel.event("notice");
  visitor.resetAndDestroy();
  await vi.waitUntil(
    () => tunnel.stdout.match(/"event":"connection"/g)?.length === 2,
    WAIT_OPTIONS,
  );
  const [, left] = tunnel.stdout.split("\n").filter((line) => line.includes('"connection"'));
  expect(JSON.parse(left!)).not.toHaveProperty("problem");
  let visitors = 0;
  await using _after = await startLocalServer((socket) => {
    visitors += 1;
    socket.pipe(socket);
  }, before.port);
  expect(await echo(await tunnel.visit(), "after")).toBe("after");
  expect(visitors).toBe(1);
});

test("what a visitor sends meanwhile arrives, also when it is more than the agent reads before", async () => {
  const before = await startEcho();
  await using tunnel = await stack.serve(before.port);
  expect(await echo(await tunnel.visit(), "before")).toBe("before");
  await before[Symbol.asyncDispose]();
  const visitor = await tunnel.visit();
  const sent = randomBytes(1024 * 1024).toString("base64");
  const answer = echo(visitor, sent);
  await tunnel.event("notice");
  await using _after = await startEcho(before.port);
  expect((await answer) === sent).toBe(true);
});

test("a server on a Unix socket is reached, and waited for", async () => {
  const directory = await createTemporaryDir();
  const path = join(directory, "echo.sock");
  const before = await startEcho(path);
  await using tunnel = await stack.serve(`unix:${path}`);
  expect(await tunnel.event("ready")).toMatchObject({ local: `unix:${path}` });
  expect(await echo(await tunnel.visit(), "before")).toBe("before");
  await before[Symbol.asyncDispose]();
  const answer = echo(await tunnel.visit(), "after");
  const message = `unix:${path} refuses connections; visitors wait up to 3 s for it`;
  expect(await tunnel.event("notice")).toEqual({ event: "notice", message });
  await using _after = await startEcho(path);
  expect(await answer).toBe("after");
  await rm(directory, { recursive: true });
});
