/** The relay that `npm start` runs beside the server. */
import { createServer } from "node:net";
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";
import { reservePorts } from "../harness/ports.ts";
import { startServer, startExpectingFailure, type TestServer } from "../harness/server/server.ts";

interface Health {
  linked: boolean;
  pid: number;
}

async function health(port: number): Promise<Health> {
  const answer = await fetch(`http://127.0.0.1:${port}/health`);
  const body: Health = await answer.json();
  return body;
}

async function relayedServer(first: number): Promise<TestServer> {
  return startServer({ env: { LOCAL_RELAY: "on", RELAY_PORT_RANGE: `${first}-${first + 9}` } });
}

test("a server that says it listens has its relay connected, and stops it with itself", async () => {
  const first = await reservePorts(10);
  const server = await relayedServer(first);
  expect(await health(first)).toMatchObject({ linked: true });
  expect(await server.stop()).toBe(0);
  await expect(health(first)).rejects.toThrow();
});

test("a relay whose port is taken does not keep the server from starting, and starts once it is free", async () => {
  const first = await reservePorts(10);
  const other = createServer((socket) => socket.destroy()).listen(first, "127.0.0.1");
  await once(other, "listening");
  await using server = await relayedServer(first);
  const problem = `relay: the relay can't listen on 127.0.0.1:${first}`;
  expect(server.output.split(problem)).toHaveLength(2);
  other.close();
  await vi.waitUntil(
    () =>
      health(first).then(
        ({ linked }) => linked,
        () => false,
      ),
    WAIT_OPTIONS,
  );
  // The reason was logged once, however often it was tried.
  expect(server.output.split(problem)).toHaveLength(2);
});

test("a relay that is killed comes back", async () => {
  const first = await reservePorts(10);
  await using server = await relayedServer(first);
  const { pid } = await health(first);
  process.kill(pid, "SIGKILL");
  const isBack = async () => {
    const now = await health(first).catch(() => undefined);
    return now !== undefined && now.pid !== pid && now.linked;
  };
  await vi.waitUntil(isBack, WAIT_OPTIONS);
  expect(server.output).toContain("will be restarted");
});

test("a server that is ended with kill -9 leaves no relay behind", async () => {
  const first = await reservePorts(10);
  const server = await relayedServer(first);
  await server.kill();
  const isGone = () =>
    health(first).then(
      () => false,
      () => true,
    );
  await vi.waitUntil(isGone, WAIT_OPTIONS);
  // The next start ends what else was left.
  const next = await startServer({ dataDir: server.dataDir });
  await next.stop();
  await server.stop();
});

test("a name that is no host stops the start with one line", async () => {
  const ended = await startExpectingFailure({ RELAY_HOST: "a b" });
  expect(ended.code).toBe(1);
  expect(ended.stderr.trim().split("\n")).toHaveLength(1);
  expect(ended.stderr).toContain("RELAY_HOST: must be a host name or an IP address");
});
