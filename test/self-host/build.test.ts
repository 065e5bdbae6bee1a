import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import {
  buildWorker,
  WORKER_BUNDLE_MAX_BYTES,
  WORKER_DIR,
  type WorkerBundle,
} from "../../self-host/build/build.ts";

let bundle: WorkerBundle;
beforeAll(async () => {
  bundle = await buildWorker();
});

test("an isolate that serves visitors starts without the API, its pages, the database and their libraries", () => {
  const heavy =
    /^(dashboard|workers\/(api|store|identity|integrations|jobs))\/|^workers\/edge\/sign-in\.ts|^access\/(argon2|issuer-keys|passes|tokens)\.ts|node_modules\/(drizzle-orm|hono|@hono|@neondatabase|jose|otpauth|oauth4webapi|stripe|tldts|nodemailer|@phi-ag)\//;
  expect(bundle.eagerSources.filter((source) => heavy.test(source))).toEqual([]);
  expect(bundle.eagerSources).toContain("workers/index.ts");
  expect(bundle.eagerSources).toContain("durable-objects/tunnel.ts");
});

test("the bundle is smaller than its limit", () => {
  expect(bundle.gzipBytes).toBeGreaterThan(0);
  expect(bundle.gzipBytes).toBeLessThan(WORKER_BUNDLE_MAX_BYTES);
});

test("the bundle leaves out the generators of documents that nothing uses", async () => {
  for (const name of await readdir(WORKER_DIR)) {
    const text = await readFile(join(WORKER_DIR, name), "latin1");
    expect([name, text.includes("UnknownZodTypeError")]).toEqual([name, false]);
  }
});

test("the same source files give the same bundle", async () => {
  expect(await buildWorker()).toEqual(bundle);
});
