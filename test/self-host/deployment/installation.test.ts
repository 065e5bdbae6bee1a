/** `npm ci`: its warnings, and how much a server needs of it. `quick-start.test.ts` starts one without development packages. */
import { execFile } from "node:child_process";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";
import { listDashboardPackages } from "../../../self-host/build/prune-packages.ts";
import { listServerPackages } from "../../harness/clean-checkout.ts";
import { getUserPath } from "../../harness/terminal.ts";

const INSTALLED_MAX_BYTES = 420 * 2 ** 20;
const BLOCK_BYTES = 512;
/** The oldest version of each range of `engines` in package.json. */
const SUPPORTED_NODE_VERSIONS = ["v20.19.0", "v22.13.0", "v24.0.0"];

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
