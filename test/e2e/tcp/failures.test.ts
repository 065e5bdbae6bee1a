/** What a TCP tunnel survives, and what ends it: each part fails separately. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { fastClock, speedUp } from "../../harness/preloads/fast-clock.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { startFaultProxy as startProxy } from "../../../chaos/faults/fault-proxy.ts";
import {
  openSocket,
  startEcho,
  startTcpStack,
  type ServedTunnel,
  type TcpStack,
} from "../../harness/relay/tcp/stack.ts";
import { readExactly } from "../../harness/relay/tcp/tunnel-port.ts";

/** For what agents do at intervals: heartbeats, and connecting to a stopped tunnel. */
const FAST = { env: fastClock(10) };

let stack: TcpStack;
beforeAll(async () => {
  stack = await startTcpStack({ ports: 30 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** Resolves once visitors are served. */
async function waitUntilServed(tunnel: ServedTunnel): Promise<void> {
  await vi.waitUntil(async () => {
    const visitor = await tunnel.visit().catch(() => null);
    if (!visitor) return false;
    visitor.write("ping");
    const answer = await readExactly(visitor, 4).catch(() => "");
    visitor.destroy();
    return String(answer) === "ping";
  }, WAIT_OPTIONS);
}

/** Resolves once the visitor's connection is closed: the proxies of the stack turn a reset into a FIN. */
async function waitForClose(visitor: Socket): Promise<void> {
  visitor.once("end", () => visitor.destroy()).resume();
  if (!visitor.closed) await new Promise((resolve) => visitor.once("close", resolve));
}

function countEvents(tunnel: ServedTunnel, name: string): number {
  return tunnel.stdout.split(`"event":"${name}"`).length - 1;
}

test("a relay that is killed and restarted serves the tunnel on its port again", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port);
  const visitor = await tunnel.visit();
  const end = waitForClose(visitor);
  await stack.relay.stop("SIGKILL");
  await end;
  await tunnel.event("disconnected");
  await stack.relay.start();
  await waitUntilServed(tunnel);
  expect(countEvents(tunnel, "reconnected")).toBe(1);
});

test("when the relay's range no longer contains the tunnel's port, the agent serves another one and says so", async () => {
  await using echo = await startEcho();
  // Tunnels that request no port get one of the relay with more free ports.
  const relay = await stack.startRelay("shrinking", { ports: 2 });
  const last = relay.port + 2;
  await using tunnel = await stack.serve(echo.port, ["--remote-port", String(last)]);
  await relay.stop();
  await relay.start(1);
  const { message } = (await tunnel.event("notice")) as { message: string };
  const [, url = ""] = /^visitors now connect to (\S+)$/.exec(message) ?? [];
  const port = Number(new URL(url).port);
  expect(port).toBe(last - 1);
  const visitor = await openSocket(port);
  visitor.write("ping");
  expect(String(await readExactly(visitor, 4))).toBe("ping");
  visitor.destroy();
});

/** Another program of the relay's machine that listens on a port. */
async function occupyPort(port: number): Promise<AsyncDisposable> {
  const program = createServer().listen(port, "127.0.0.1");
  await once(program, "listening");
  return {
    async [Symbol.asyncDispose]() {
      program.close();
      await once(program, "close");
    },
  };
}

/** @returns the port that the new tunnel was assigned. */
async function createTunnel(subdomain: string): Promise<number> {
  const { body } = await stack.owner.post<Tunnel>("/tunnels", {
    ...{ localPort: 1, protocol: "tcp", subdomain },
  });
  return body.publicPort!;
}

test("a new tunnel whose assigned port another program uses gets another port", async () => {
  await using echo = await startEcho();
  const port = await createTunnel("assigned");
  await using _ = await occupyPort(port);
  await using tunnel = await stack.serve(echo.port, ["--subdomain", "assigned"]);
  expect(tunnel.publicPort).not.toBe(port);
  await waitUntilServed(tunnel);
});

test("an agent that asks for a port that another program uses says so, and waits for it", async () => {
  await using echo = await startEcho();
  const port = await createTunnel("asked");
  const program = await occupyPort(port);
  const common = ["--server", stack.api.server.url, "--token-file", "TOKEN", "--json"];
  const asked = ["--subdomain", "asked", "--remote-port", String(port)];
  const { token } = stack;
  await using agent = await runAgent(["tcp", String(echo.port), ...common, ...asked], { token });
  const { reason } = await agent.event("retrying");
  await program[Symbol.asyncDispose]();
  expect(reason).toBe(
    `another program uses port ${port} of the relay now; if this lasts, ask the server's operator to free it, or choose another remote port`,
  );
  expect(await agent.event("ready")).toMatchObject({ publicPort: port });
});

test("when the network resets every connection to the relay, those end and visitors are served again", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port);
  const visitor = await tunnel.visit();
  visitor.write("before");
  await readExactly(visitor, 6);
  const end = waitForClose(visitor);
  stack.relay.tcp.cut();
  await end;
  await tunnel.event("disconnected");
  await waitUntilServed(tunnel);
});

test("when the network drops everything, it is detected and the tunnel is served over new connections", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port, [], FAST);
  stack.relay.tcp.freeze();
  speedUp(tunnel.child);
  await tunnel.event("disconnected");
  await waitUntilServed(tunnel);
});

test("the newest agent with the same token takes the tunnel over, and the other one exits", async () => {
  await using echo = await startEcho();
  await using first = await stack.serve(echo.port, ["--subdomain", "taken-over"]);
  await using second = await stack.serve(echo.port, ["--subdomain", "taken-over"]);
  expect(await first.exit).toBe(1);
  expect(await first.event("rejected")).toMatchObject({ reason: "replaced" });
  expect(second.publicPort).toBe(first.publicPort);
  await waitUntilServed(second);
});

test("a stopped tunnel has no open port and no connections until it is started again", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port, [], FAST);
  const visitor = await tunnel.visit();
  visitor.write("x");
  await readExactly(visitor, 1);
  const end = waitForClose(visitor);
  await stack.owner.post(`/tunnels/${tunnel.tunnelId}/stop`);
  await end;
  await vi.waitUntil(
    () =>
      tunnel.visit().then(
        () => false,
        () => true,
      ),
    WAIT_OPTIONS,
  );
  expect(await tunnel.event("disconnected")).toMatchObject({
    reason: expect.stringContaining("tunnel_stopped"),
  });
  await stack.owner.post(`/tunnels/${tunnel.tunnelId}/start`);
  speedUp(tunnel.child);
  await waitUntilServed(tunnel);
});

test("an agent that learns of a stop from the relay first leaves the report to its connection to the API", async () => {
  await using echo = await startEcho();
  await using api = await startProxy(stack.api.server.port);
  await using tunnel = await stack.serve(echo.port, ["--server", api.url], FAST);
  const end = waitForClose(await tunnel.visit());
  api.freeze();
  await stack.owner.post(`/tunnels/${tunnel.tunnelId}/stop`);
  await end;
  speedUp(tunnel.child);
  expect(await tunnel.event("disconnected")).toMatchObject({
    reason: expect.not.stringContaining("relay"),
  });
  await vi.waitUntil(() => tunnel.stdout.includes("tunnel_stopped"), WAIT_OPTIONS);
});

test("when a tunnel is deleted, its agent exits and its connections end", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port);
  const visitor = await tunnel.visit();
  visitor.write("x");
  await readExactly(visitor, 1);
  const end = waitForClose(visitor);
  await stack.owner.delete(`/tunnels/${tunnel.tunnelId}`);
  expect(await tunnel.exit).toBe(1);
  expect(await tunnel.event("rejected")).toMatchObject({ reason: "tunnel_deleted" });
  await end;
});

test("a stopped agent exits with 0, and its visitors are disconnected", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port);
  const visitor = await tunnel.visit();
  visitor.write("x");
  await readExactly(visitor, 1);
  const end = waitForClose(visitor);
  tunnel.child.kill("SIGINT");
  expect(await tunnel.exit).toBe(0);
  await end;
});

test("while the API is down visitors are served, and the tunnel is the same afterwards", async () => {
  await using echo = await startEcho();
  const api = await startProxy(stack.api.server.port);
  await using tunnel = await stack.serve(echo.port, ["--server", api.url]);
  const visitor = await tunnel.visit();
  visitor.write("before ");
  await readExactly(visitor, 7);
  await api[Symbol.asyncDispose]();
  await tunnel.event("disconnected");
  visitor.write("and after");
  expect(String(await readExactly(visitor, 9))).toBe("and after");
  await waitUntilServed(tunnel);
  const at = { host: "127.0.0.1", port: api.port };
  const again = await startProxy(stack.api.server.port, { at });
  await tunnel.event("reconnected");
  await waitUntilServed(tunnel);
  expect(countEvents(tunnel, "ready")).toBe(1);
  await again[Symbol.asyncDispose]();
});

test("an agent that lost both of its connections says that it has reconnected when it has both again", async () => {
  await using echo = await startEcho();
  const api = await startProxy(stack.api.server.port);
  await using tunnel = await stack.serve(echo.port, ["--server", api.url]);
  await api[Symbol.asyncDispose]();
  await tunnel.event("disconnected");
  stack.relay.tcp.cut();
  await waitUntilServed(tunnel);
  expect(countEvents(tunnel, "reconnected")).toBe(0);
  const at = { host: "127.0.0.1", port: api.port };
  const again = await startProxy(stack.api.server.port, { at });
  await tunnel.event("reconnected");
  await again[Symbol.asyncDispose]();
});
