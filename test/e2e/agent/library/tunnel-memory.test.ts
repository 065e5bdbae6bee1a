/** What a program keeps of tunnels that it has opened and closed: nothing. The server is a fake: a real one would take minutes. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { FRAME, FrameWriter, SUBPROTOCOL } from "../../../../protocol/wire/frames.ts";
import { ROOT } from "../../../../self-host/build/build.ts";
import { NODE_ENVIRONMENT } from "../../../harness/node-environment.ts";
import { WELCOME } from "../../../harness/tunnel/scripted-tunnel.ts";

const MIB = 1024 * 1024;
const TUNNELS = 1_000;
/** 1,100 bytes for each tunnel exceed it, whatever V8 frees meanwhile; one that is kept has at least a socket, a pool and two listeners. */
const GROWTH_MAX_BYTES = MIB;
/** On a busy machine the last sockets close later than their tunnels, and V8 still compiles. */
const SETTLE_MAX_MS = 30_000;

let server: WebSocketServer;
beforeAll(async () => {
  const writer = new FrameWriter();
  writer.writeJson(FRAME.welcome, 0, 0, WELCOME);
  const welcome = Buffer.from(writer.take());
  server = new WebSocketServer({ port: 0, host: "127.0.0.1", handleProtocols: () => SUBPROTOCOL });
  server.on("connection", (socket) => socket.once("message", () => socket.send(welcome)));
  await once(server, "listening");
});
afterAll(() => server.close());

const PROGRAM = `
  const [url, tunnels, growthMaxBytes, settleMaxMs] = process.argv.slice(1);
  const { signal } = new AbortController();
  const targets = [{ port: 1 }, { fetch: () => new Response() }];
  let opened = 0;
  async function openAndClose(count) {
    const one = async () => {
      const target = targets[opened++ % targets.length];
      const tunnel = await expose({ ...target, server: url, token: "AAAA", signal });
      await tunnel.close();
    };
    const inTurn = async () => {
      for (let i = 0; i < count / 20; i += 1) await one();
    };
    await Promise.all(Array.from({ length: 20 }, inTurn));
  }
  /** Finalizers run between two collections, and free more. */
  async function measureHeap() {
    for (let i = 0; i < 5; i += 1) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return process.memoryUsage().heapUsed;
  }
  await openAndClose(500);
  const before = await measureHeap();
  await openAndClose(Number(tunnels));
  const untilMs = Date.now() + Number(settleMaxMs);
  let growth;
  do growth = (await measureHeap()) - before;
  while (growth >= growthMaxBytes && Date.now() < untilMs);
  console.log(JSON.stringify({ opened, growth }));
  process.exit();`;

test("1,000 tunnels that were opened and closed leave nothing in the heap", async () => {
  const library = JSON.stringify(pathToFileURL(join(ROOT, "agent/dist/expose.js")).href);
  const { port } = server.address() as AddressInfo;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      ...["--expose-gc", "--input-type=module", "--eval"],
      `import { expose } from ${library};\n${PROGRAM}`,
      `http://127.0.0.1:${port}`,
      ...[TUNNELS, GROWTH_MAX_BYTES, SETTLE_MAX_MS].map(String),
    ],
    { env: NODE_ENVIRONMENT },
  );
  const { opened, growth } = JSON.parse(stdout) as { opened: number; growth: number };
  console.log(`growth of the heap: ${Math.round(growth / 1024)} KiB`);
  expect(opened).toBe(TUNNELS + 500);
  expect(growth).toBeLessThan(GROWTH_MAX_BYTES);
}, 120_000);
