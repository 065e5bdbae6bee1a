import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { kCurrentWorker, Response as MiniflareResponse } from "miniflare";
import { defineConfig } from "vitest/config";
import { WRANGLER_CONFIG } from "./self-host/workerd/wrangler-config.ts";

/** Long, so that a busy machine does not fail a test. */
const TIMEOUTS = { testTimeout: 120_000, hookTimeout: 240_000 };

/** Node.js runs the TypeScript as it is, which takes less of a core than Vite's own modules, and uses its compile cache. */
const NATIVE_MODULES = {
  experimental: { viteModuleRunner: false, nodeLoader: false },
  execArgv: ["--import", "./test/harness/preloads/wasm-modules.ts"],
};

/** These tests add network interfaces, at which browsers abort page loads, so they run after all others. */
const CHANGES_THE_NETWORK = [
  "test/e2e/networks/namespaces.test.ts",
  "test/e2e/tcp/syn-flood.test.ts",
];

function sendPart(stream: ReadableStreamDefaultController): void {
  stream.enqueue(new Uint8Array(1));
}

export default defineConfig({
  test: {
    // Tests mostly wait for other processes: more workers than cores keep the cores busy.
    maxWorkers: 4,
    projects: [
      {
        test: {
          name: "node",
          include: ["test/**/*.test.ts"],
          exclude: ["test/**/*.workerd.test.ts", ...CHANGES_THE_NETWORK],
          globalSetup: "test/harness/global-setup.ts",
          // Loading the harness again for each file would take a minute of each core.
          isolate: false,
          ...NATIVE_MODULES,
          ...TIMEOUTS,
        },
      },
      {
        test: {
          name: "network",
          include: CHANGES_THE_NETWORK,
          globalSetup: "test/harness/global-setup.ts",
          sequence: { groupOrder: 1 },
          ...NATIVE_MODULES,
          ...TIMEOUTS,
        },
      },
      {
        plugins: [
          cloudflareTest({
            main: "./test/harness/workerd/objects.ts",
            miniflare: {
              compatibilityDate: WRANGLER_CONFIG.compatibilityDate,
              compatibilityFlags: WRANGLER_CONFIG.compatibilityFlags,
              durableObjects: {
                TUNNEL: { className: "Tunnel", useSQLite: true },
                ORGANIZATION: { className: "Organization", useSQLite: true },
                DIRECTORY: { className: "Directory", useSQLite: true },
                RATE_LIMITER: { className: "RateLimiter", useSQLite: true },
                RECEIVER: { className: "Receiver", useSQLite: true },
                RELAY: { className: "Relay", useSQLite: true },
              },
              serviceBindings: {
                INTERNAL_API: { name: kCurrentWorker, entrypoint: "InternalApi" },
                SILENT_SERVICE: () => new Promise<never>(() => {}),
                ENDLESS_SERVICE: () =>
                  new MiniflareResponse(new ReadableStream({ start: sendPart })),
              },
            },
          }),
        ],
        test: {
          name: "workerd",
          include: ["test/**/*.workerd.test.ts"],
          // Starting workerd again for each file would take half of the time.
          isolate: false,
          ...TIMEOUTS,
        },
      },
    ],
  },
});
