import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import {
  buildWorker,
  ROOT,
  WORKER_BUNDLE_MAX_BYTES,
  type WorkerBundle,
} from "../../self-host/build.ts";

let bundle: WorkerBundle;
beforeAll(async () => {
  bundle = await buildWorker();
});

test("an isolate that serves visitors starts without the API, the database and their libraries", () => {
  const heavy =
    /^workers\/(api|store|identity|background)\/|node_modules\/(drizzle-orm|hono|@hono|@neondatabase|jose)\//;
  expect(bundle.eagerSources.filter((source) => heavy.test(source))).toEqual([]);
  expect(bundle.eagerSources).toContain("workers/index.ts");
  expect(bundle.eagerSources).toContain("durable-objects/tunnel.ts");
});

test("the bundle stays under its limit", () => {
  expect(bundle.gzipBytes).toBeGreaterThan(0);
  expect(bundle.gzipBytes).toBeLessThan(WORKER_BUNDLE_MAX_BYTES);
});

test("the same sources give the same bundle, and building again touches nothing", async () => {
  expect(await buildWorker()).toEqual(bundle);
});

test("Cloudflare's own tool accepts it", async () => {
  const outDir = await mkdtemp(join(tmpdir(), "underpass-test-"));
  const wrangler = join(ROOT, "node_modules/.bin/wrangler");
  const { stdout } = await promisify(execFile)(
    wrangler,
    ["deploy", "--dry-run", "--outdir", outDir],
    { cwd: ROOT, env: { ...process.env, WRANGLER_SEND_METRICS: "false", CI: "true" } },
  );
  expect(stdout).toContain("--dry-run: exiting now.");
  await rm(outDir, { recursive: true });
});
