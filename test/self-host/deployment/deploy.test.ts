/** The upload of `npm run deploy`, checked by Cloudflare's own tool without an account or a connection. */
import { execFile } from "node:child_process";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse } from "smol-toml";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Settings } from "../../../workers/config/config.ts";
import { ROOT, WORKER_BUNDLE_MAX_BYTES } from "../../../self-host/build/build.ts";
import { SECRET_NAMES } from "../../../self-host/settings.ts";
import { createTemporaryDir } from "../../harness/directories.ts";

const run = promisify(execFile);
/** Without telemetry. */
const QUIET = { WRANGLER_SEND_METRICS: "false", WRANGLER_HIDE_BANNER: "true", CI: "true" };

let outDir: string;
let output: string;
beforeAll(async () => {
  outDir = await createTemporaryDir();
  const wrangler = join(ROOT, "node_modules/.bin/wrangler");
  const args = ["deploy", "--dry-run", "--env", "production", "--outdir", outDir];
  const env = { PATH: process.env.PATH, HOME: outDir, ...QUIET };
  const { stdout, stderr } = await run(wrangler, args, { cwd: ROOT, env });
  output = stdout + stderr;
});
afterAll(() => rm(outDir, { recursive: true }));

test("the production environment is valid, without warnings", () => {
  expect(output).toContain("--dry-run: exiting now.");
  expect(output).not.toMatch(/warning|error/i);
});

test("every binding of the Worker is configured", () => {
  for (const binding of [
    "TUNNEL",
    "ORGANIZATION",
    "DIRECTORY",
    "RATE_LIMITER",
    "API (underpass#Api)",
    "INTERNAL_API (underpass#InternalApi)",
  ]) {
    expect(output).toContain(`env.${binding}`);
  }
});

test("the variables, with the secrets of docs/operators/deploy.md, are valid settings of the Worker", async () => {
  const vars = Object.fromEntries(
    [...output.matchAll(/^env\.([A-Z_]+) \("(.*)"\)/gm)].map(([, name = "", value]) => [
      name,
      value,
    ]),
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

test("the bundle is smaller than its limit, and visitors never load the modules of the API", async () => {
  const [, gzipKiB] = /gzip: ([\d.]+) KiB/.exec(output) ?? [];
  expect(Number(gzipKiB) * 1024).toBeLessThan(WORKER_BUNDLE_MAX_BYTES);
  const names = (await readdir(outDir)).filter((name) => /\.(js|wasm)$/.test(name));
  const built = await readdir(join(ROOT, "dist/worker"));
  expect(names.sort()).toEqual(built.filter((name) => !name.endsWith(".map")).sort());
  const entry = await readFile(join(outDir, "index.js"), "utf8");
  expect(entry).toMatch(/import\("\.\/app-[A-Z0-9]+\.js"\)/);
  expect(entry).not.toMatch(/from ?"\.\/app-/);
});

test("the Worker answers every path before the files of the dashboard, in both environments", async () => {
  const { assets, env } = parse(await readFile(join(ROOT, "wrangler.toml"), "utf8")) as {
    assets: object;
    env: { production: object };
  };
  expect(assets).toEqual({
    directory: "dist/dashboard",
    binding: "ASSETS",
    run_worker_first: true,
    html_handling: "none",
  });
  // So it inherits them.
  expect(env.production).not.toHaveProperty("assets");
});
