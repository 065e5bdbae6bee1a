import { once } from "node:events";
import { request, type IncomingMessage, type Server } from "node:http";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  DEPARTED_PATH,
  formatKeys,
  parseKeys,
  toConnectionPath,
} from "../../../../protocol/front-proxy/connection-key.ts";
import { createControlServer } from "../../../../self-host/front-proxy/control-socket.ts";
import type { MetricFamily } from "../../../../shared/metrics/exposition.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";

const METRICS: MetricFamily[] = [{ name: "a", help: "b", type: "gauge", samples: [] }];
/** The keys of the only connections, once each is cut. */
const cut: string[] = [];
let socketPath: string;
let server: Server;

beforeAll(async () => {
  socketPath = join(await createTemporaryDir(), "control.sock");
  server = createControlServer({
    readMetrics: () => METRICS,
    cutConnection: (key) => key === "known" && cut.push(key) > 0,
    isConnected: (key) => key === "known",
  });
  await once(server.listen(socketPath), "listening");
});
afterAll(() => void server.close());

async function send(method: string, path: string, body?: string): Promise<IncomingMessage> {
  const [response] = (await once(request({ socketPath, method, path }).end(body), "response")) as [
    IncomingMessage,
  ];
  return response;
}

test("a connection is cut by its key, and one that is not known is not found", async () => {
  expect((await send("DELETE", toConnectionPath("unknown"))).resume().statusCode).toBe(404);
  expect(cut).toEqual([]);
  expect((await send("DELETE", toConnectionPath("known"))).resume().statusCode).toBe(204);
  expect(cut).toEqual(["known"]);
});

test("the keys that no connection has are found", async () => {
  const find = async (keys: string[]) =>
    parseKeys(await text(await send("POST", DEPARTED_PATH, formatKeys(keys))));
  expect(await find(["a", "known", "b"])).toEqual(["a", "b"]);
  expect(await find(["known"])).toEqual([]);
  expect(await find([])).toEqual([]);
});

test("the metrics can be read, and nothing else is found", async () => {
  expect(await json(await send("GET", "/metrics"))).toEqual(METRICS);
  for (const [method, path] of [
    ["GET", toConnectionPath("known")],
    ["POST", "/metrics"],
    ["GET", "/"],
  ] as const)
    expect((await send(method, path)).resume().statusCode).toBe(404);
  expect(cut).toEqual(["known"]);
});
