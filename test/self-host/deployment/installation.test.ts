/** `npm ci`: its warnings, and the packages that a server needs. */
import { execFile } from "node:child_process";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";
import { listDashboardPackages } from "../../../self-host/build/prune-packages.ts";
import { createCleanCheckout } from "../../harness/clean-checkout.ts";
import { reservePort } from "../../harness/ports.ts";
import { getUserPath } from "../../harness/terminal.ts";

const INSTALLED_MAX_BYTES = 420 * 2 ** 20;
const BLOCK_BYTES = 512;
/** The oldest version of each range of `engines` in package.json. */
const SUPPORTED_NODE_VERSIONS = ["v20.19.0", "v22.13.0", "v24.0.0"];

interface LockFile {
  packages: Record<string, { dev?: boolean }>;
}

/** Paths below node_modules of the packages that `npm ci --omit=dev` installs on this platform, before its build. */
async function listServerPackages(): Promise<string[]> {
  const text = await readFile(join(ROOT, "package-lock.json"), "utf8");
  const installed = await readFile(join(ROOT, "node_modules/.package-lock.json"), "utf8");
  const { packages: hidden } = JSON.parse(installed) as LockFile;
  return Object.entries((JSON.parse(text) as LockFile).packages)
    .filter(([path, { dev }]) => path.startsWith("node_modules/") && !dev && path in hidden)
    .map(([path]) => path.replace(/^node_modules\//, ""));
}

/** As `du` counts: blocks on the disk, and a hard-linked file once. */
async function measureBytes(dir: string, counted: Set<number>): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    const { ino, blocks } = await lstat(path);
    if (!counted.has(ino)) bytes += blocks * BLOCK_BYTES;
    counted.add(ino);
    if (entry.isDirectory()) bytes += await measureBytes(path, counted);
  }
  return bytes;
}

test.each(SUPPORTED_NODE_VERSIONS)(
  "npm ci prints no engine warning on Node.js %s",
  async (version) => {
    const pretend = `Object.defineProperty(process,"version",{value:"${version}"})`;
    const { stderr } = await promisify(execFile)(
      "npm",
      ["ci", "--dry-run", "--ignore-scripts", "--offline"],
      {
        cwd: ROOT,
        env: {
          PATH: getUserPath(),
          HOME: process.env.HOME,
          NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(pretend)}`,
        },
      },
    );
    expect(stderr).not.toContain("EBADENGINE");
  },
);

test("the packages of a server take up at most 420 MB", async () => {
  const counted = new Set<number>();
  const removed = new Set(await listDashboardPackages(ROOT));
  expect(removed).toContain("node_modules/react");
  let bytes = 0;
  for (const path of await listServerPackages()) {
    if (removed.has(`node_modules/${path}`)) continue;
    bytes += await measureBytes(join(ROOT, "node_modules", path), counted);
  }
  expect(bytes).toBeGreaterThan(INSTALLED_MAX_BYTES / 4);
  expect(bytes).toBeLessThanOrEqual(INSTALLED_MAX_BYTES);
});

test("npm start works without the development dependencies", async () => {
  const env = { PORT: String(await reservePort()), LOCAL_RELAY: "off", npm_config_omit: "dev" };
  const packages = (await listServerPackages()).filter((path) => !path.includes("node_modules/"));
  await using checkout = await createCleanCheckout({ env, packages });
  await using removed = checkout.type("test ! -e node_modules/react -a -e node_modules/hono");
  expect(await removed.exit).toBe(0);
  await using server = checkout.type("npm start");
  await server.waitForOutput(/"message":"listening"/);
  const page = await fetch(`http://127.0.0.1:${env.PORT}/`);
  expect(await page.text()).toContain('<div id="root">');
  expect(await server.interrupt()).toBe(0);
});
