/** What `npm run deploy` would deploy, as Cloudflare's own tool puts it together: nothing leaves this machine. */
import { execFile } from "node:child_process";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Settings } from "../../workers/config/config.ts";
import { ROOT, WORKER_BUNDLE_MAX_BYTES } from "../../self-host/build/build.ts";
import { SECRET_NAMES } from "../../self-host/settings.ts";
import { createTemporaryDir } from "../harness/directories.ts";

const run = promisify(execFile);
/** Nobody is logged in, and nothing is told to anybody. */
const QUIET = { WRANGLER_SEND_METRICS: "false", WRANGLER_HIDE_BANNER: "true", CI: "true" };

let outDir: string;
let told: string;
beforeAll(async () => {
  outDir = await createTemporaryDir();
  const wrangler = join(ROOT, "node_modules/.bin/wrangler");
  const args = ["deploy", "--dry-run", "--env", "production", "--outdir", outDir];
  const env = { PATH: process.env.PATH, HOME: outDir, ...QUIET };
  const { stdout, stderr } = await run(wrangler, args, { cwd: ROOT, env });
  told = stdout + stderr;
});
afterAll(() => rm(outDir, { recursive: true }));

test("the production environment is accepted, without a complaint", () => {
  expect(told).toContain("--dry-run: exiting now.");
  expect(told).not.toMatch(/warning|error/i);
});

test("everything is bound that the Worker asks for", () => {
  for (const binding of [
    "TUNNEL",
    "ORGANIZATION",
    "HOSTNAME",
    "RATE_LIMITER",
    "ROWS (underpass#Rows)",
  ]) {
    expect(told).toContain(`env.${binding}`);
  }
});

test("its variables, with the secrets of docs/deploy.md, are settings that the Worker takes", async () => {
  const vars = Object.fromEntries(
    [...told.matchAll(/^env\.([A-Z_]+) \("(.*)"\)/gm)].map(([, name = "", value]) => [name, value]),
  );
  const secrets = await Promise.all(
    SECRET_NAMES.map(async (name) => {
      const { stdout } = await run("npm", ["run", "--silent", "secret", name], { cwd: ROOT });
      return [name, stdout.trim()];
    }),
  );
  const settings = Settings.parse({ ...vars, ...Object.fromEntries(secrets) });
  expect(settings).toMatchObject({ HOSTED: true, PUBLIC_SCHEME: "https", DEFAULT_PLAN: "free" });
  expect(vars).toHaveProperty("API_HOSTS");
});

test("it is smaller than its limit, and the API is in modules that visitors never load", async () => {
  const [, gzipKiB] = /gzip: ([\d.]+) KiB/.exec(told) ?? [];
  expect(Number(gzipKiB) * 1024).toBeLessThan(WORKER_BUNDLE_MAX_BYTES);
  const names = (await readdir(outDir)).filter((name) => /\.(js|wasm)$/.test(name));
  const built = await readdir(join(ROOT, "dist/worker"));
  expect(names.sort()).toEqual(built.sort());
  const entry = await readFile(join(outDir, "index.js"), "utf8");
  expect(entry).toMatch(/import\("\.\/app-[A-Z0-9]+\.js"\)/);
  expect(entry).not.toMatch(/from ?"\.\/app-/);
});
