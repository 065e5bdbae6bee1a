/** The relay that `npm start` runs. */
import { createServer } from "node:net";
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { getCommandLine } from "../../self-host/processes/processes.ts";
import { fastClock, speedUp } from "../harness/preloads/fast-clock.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";
import { reservePorts } from "../harness/ports.ts";
import { startServer, startExpectingFailure, type TestServer } from "../harness/server/server.ts";

interface Health {
  linked: boolean;
  pid: number;
}

async function readHealth(port: number): Promise<Health> {
  const answer = await fetch(`http://127.0.0.1:${port}/health`);
  const body: Health = await answer.json();
  return body;
}

async function relayedServer(first: number): Promise<TestServer> {
  const relay = { LOCAL_RELAY: "on", RELAY_PORT_RANGE: `${first}-${first + 9}` };
  return startServer({ env: { ...relay, ...fastClock(10) } });
}

test("the relay is connected when the server reports that it listens, is restarted when it was killed, and stops with the server", async () => {
  const first = await reservePorts(10);
  const server = await relayedServer(first);
  const { linked, pid } = await readHealth(first);
  expect(linked).toBe(true);
  process.kill(pid, "SIGKILL");
  const isRestarted = async () => {
    const now = await readHealth(first).catch(() => undefined);
    return now !== undefined && now.pid !== pid && now.linked;
  };
  await vi.waitUntil(isRestarted, WAIT_OPTIONS);
  await vi.waitUntil(() => server.output.includes("relay was restarted"), WAIT_OPTIONS);
  // The connection of the killed relay delays the end of workerd until it is killed.
  speedUp(await server.getPid("server"));
  expect(await server.stop()).toBe(0);
  await expect(readHealth(first)).rejects.toThrow();
});

test("the server starts while the relay's port is in use, and the relay starts when the port is free", async () => {
  const first = await reservePorts(10);
  const other = createServer((socket) => socket.destroy()).listen(first, "127.0.0.1");
  await once(other, "listening");
  await using server = await relayedServer(first);
  const problem = `relay: the relay can't listen on 127.0.0.1:${first}`;
  expect(server.output.split(problem)).toHaveLength(2);
  other.close();
  await vi.waitUntil(
    () =>
      readHealth(first).then(
        ({ linked }) => linked,
        () => false,
      ),
    WAIT_OPTIONS,
  );
  // The reason is logged once, not with each retry.
  expect(server.output.split(problem)).toHaveLength(2);
});

test("all processes exit soon after a kill -9 of the server", async () => {
  const first = await reservePorts(10);
  const server = await relayedServer(first);
  const others = [await server.getPid("workerd"), await server.getPid("postgres")];
  await server.kill();
  const hasExited = (url: string) =>
    fetch(url).then(
      () => false,
      () => true,
    );
  const exits = { timeout: 5_000, interval: 20 };
  await vi.waitUntil(() => others.every((pid) => getCommandLine(pid) === undefined), exits);
  await vi.waitUntil(() => hasExited(`http://127.0.0.1:${first}/health`), exits);
  await vi.waitUntil(() => hasExited(`${server.url}/health`), exits);
  await server.stop();
});

test("an invalid RELAY_HOST prevents the start with a one-line error", async () => {
  const ended = await startExpectingFailure({ RELAY_HOST: "a b" });
  expect(ended.code).toBe(1);
  expect(ended.stderr.trim().split("\n")).toHaveLength(1);
  expect(ended.stderr).toContain("RELAY_HOST: must be a host name or an IP address");
});
