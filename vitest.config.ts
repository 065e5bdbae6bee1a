import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { kCurrentWorker, Response as MiniflareResponse } from "miniflare";
import { defineConfig, type Plugin } from "vitest/config";

/** Imports a `.wasm` file as a compiled module, as workerd does. */
const wasmModules: Plugin = {
  name: "wasm-modules",
  enforce: "pre",
  load(id) {
    if (!id.endsWith(".wasm")) return null;
    return `import { readFileSync } from "node:fs";
export default new WebAssembly.Module(readFileSync(${JSON.stringify(id)}));`;
  },
};

/** Long, so that a busy machine does not fail a test. */
const TIMEOUTS = { testTimeout: 120_000, hookTimeout: 240_000 };

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
        plugins: [wasmModules],
        test: {
          name: "node",
          include: ["test/**/*.test.ts"],
          exclude: ["test/**/*.workerd.test.ts", ...CHANGES_THE_NETWORK],
          globalSetup: "test/harness/build.ts",
          server: { deps: { inline: [/\.wasm$/] } },
          // Loading the harness again for each file would take a minute of each core.
          isolate: false,
          ...TIMEOUTS,
        },
      },
      {
        plugins: [wasmModules],
        test: {
          name: "network",
          include: CHANGES_THE_NETWORK,
          globalSetup: "test/harness/build.ts",
          sequence: { groupOrder: 1 },
          server: { deps: { inline: [/\.wasm$/] } },
          ...TIMEOUTS,
        },
      },
      {
        plugins: [
          cloudflareTest({
            main: "./test/harness/workerd/objects.ts",
            miniflare: {
              compatibilityDate: "2026-09-18",
              compatibilityFlags: ["enable_request_signal", "no_web_socket_compression"],
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
