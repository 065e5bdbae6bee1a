/** A restart of the local server of a TCP tunnel, as its visitors and the user of the agent see it. */
import { rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTemporaryDir } from "../../harness/directories.ts";
import { startEcho, startTcpStack, type TcpStack } from "../../harness/relay/tcp/stack.ts";
import { readAll } from "../../harness/relay/tcp/tunnel-port.ts";

let stack: TcpStack;
beforeAll(async () => {
  stack = await startTcpStack({ address: "127.0.0.1", ports: 4 });
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
