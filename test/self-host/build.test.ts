import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { AGENT_PACKAGE, buildAgentPackage } from "../../self-host/build/agent-package.ts";
import { readWorkerModules } from "../../self-host/build/worker-modules.ts";
import { beforeAll, expect, test } from "vitest";
import {
  buildWorker,
  WORKER_BUNDLE_MAX_BYTES,
  WORKER_DIR,
  WORKER_MODULES,
  type WorkerBundle,
} from "../../self-host/build/build.ts";

import { toSourcePositions } from "../../self-host/workerd/source-positions.ts";

let bundle: WorkerBundle;
beforeAll(async () => {
  bundle = await buildWorker();
});

test("an isolate that serves visitors starts without the API, its pages, the database and their libraries", () => {
  // Reading `Accept` takes one small module of Hono.
  const heavy =
    /^(dashboard|workers\/(api|store|identity|integrations|jobs))\/|^workers\/edge\/sign-in\.ts|^access\/(argon2|issuer-keys|passes|tokens)\.ts|node_modules\/(drizzle-orm|hono(?!\/dist\/utils\/accept\.js$)|@hono|@neondatabase|jose|otpauth|oauth4webapi|stripe|tldts|nodemailer|@phi-ag)\//;
  expect(bundle.eagerSources.filter((source) => heavy.test(source))).toEqual([]);
  expect(bundle.eagerSources).toContain("workers/index.ts");
  expect(bundle.eagerSources).toContain("durable-objects/tunnel.ts");
});

test("a self-hosted server's isolate for visitors contains no module of the API", async () => {
  const edge = await readWorkerModules(WORKER_MODULES, "edge");
  const all = await readWorkerModules(WORKER_MODULES, "index");
  expect(edge[0]).toBe("edge.js");
  expect(all[0]).toBe("index.js");
  const apiOnly = /^(app|cron|page|document|provider|modules|service-metrics)-/;
  expect(all.filter((name) => apiOnly.test(name)).length).toBeGreaterThanOrEqual(7);
  expect(edge.filter((name) => apiOnly.test(name))).toEqual([]);
  expect(edge.filter((name) => name.startsWith("sign-in-"))).toHaveLength(1);
});

test("the bundle is smaller than its limit", () => {
  expect(bundle.gzipBytes).toBeGreaterThan(0);
  expect(bundle.gzipBytes).toBeLessThan(WORKER_BUNDLE_MAX_BYTES);
});

test("the agent's package has the same bytes when it is built again, and its file is not touched", async () => {
  const [content, { mtimeMs }] = [await readFile(AGENT_PACKAGE), await stat(AGENT_PACKAGE)];
  await buildAgentPackage();
  expect((await readFile(AGENT_PACKAGE)).equals(content)).toBe(true);
  expect((await stat(AGENT_PACKAGE)).mtimeMs).toBe(mtimeMs);
});

test("the bundle leaves out the generators of documents that nothing uses", async () => {
  for (const name of await listModules()) {
    const text = await readFile(join(WORKER_DIR, name), "latin1");
    expect([name, text.includes("UnknownZodTypeError")]).toEqual([name, false]);
  }
});

test("positions in the bundle are logged as those in the source files", async () => {
  const modules = await Promise.all(
    (await listModules()).map(async (name) => {
      return { name, text: await readFile(join(WORKER_DIR, name), "latin1") };
    }),
  );
  const { name, text } = modules.find((module) => module.text.includes("failed query: "))!;
  const before = text.slice(0, text.indexOf("failed query: "));
  const line = before.split("\n").length;
  const column = before.length - before.lastIndexOf("\n");
  expect(toSourcePositions(`    at t (${name}:${line}:${column})`)).toMatch(
    /^ {4}at t \(workers\/errors\.ts:\d+:\d+\)$/,
  );
  const unknown = "at t (other.js:1:1), https://example.com/chunk.js";
  expect(toSourcePositions(unknown)).toBe(unknown);
});

test("the same source files give the same bundle", async () => {
  expect(await buildWorker()).toEqual(bundle);
});

async function listModules(): Promise<string[]> {
  return (await readdir(WORKER_DIR)).filter((name) => name.endsWith(".js"));
}
