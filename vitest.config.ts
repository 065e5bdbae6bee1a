import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { kCurrentWorker } from "miniflare";
import { defineConfig, type Plugin } from "vitest/config";

/** As workerd and the bundle do: a `.wasm` file is a module that is compiled already. */
const wasmModules: Plugin = {
  name: "wasm-modules",
  enforce: "pre",
  load(id) {
    if (!id.endsWith(".wasm")) return null;
    return `import { readFileSync } from "node:fs";
export default new WebAssembly.Module(readFileSync(${JSON.stringify(id)}));`;
  },
};

/** Only ends what will not end by itself: a busy machine is no failure. */
const PATIENCE = { testTimeout: 120_000, hookTimeout: 240_000 };

/** They add interfaces to this machine, at which browsers give up what they are loading: these run alone. */
const CHANGES_THE_NETWORK = [
  "test/e2e/networks/namespaces.test.ts",
  "test/e2e/tcp/syn-flood.test.ts",
];

export default defineConfig({
  test: {
    // Tests wait for other processes most of the time: more of them than cores keep two cores busy.
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
          // Loading the harness anew for each file takes a minute of each core.
          isolate: false,
          ...PATIENCE,
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
          ...PATIENCE,
        },
      },
      {
        plugins: [
          cloudflareTest({
            main: "./test/harness/workerd/objects.ts",
            miniflare: {
              compatibilityDate: "2026-09-18",
              compatibilityFlags: ["enable_request_signal"],
              durableObjects: {
                TUNNEL: { className: "Tunnel", useSQLite: true },
                ORGANIZATION: { className: "Organization", useSQLite: true },
                HOSTNAME: { className: "Hostname", useSQLite: true },
                RATE_LIMITER: { className: "RateLimiter", useSQLite: true },
                RECEIVER: { className: "Receiver", useSQLite: true },
                RELAY: { className: "Relay", useSQLite: true },
              },
              serviceBindings: { ROWS: { name: kCurrentWorker, entrypoint: "Rows" } },
            },
          }),
        ],
        test: { name: "workerd", include: ["test/**/*.workerd.test.ts"], ...PATIENCE },
      },
    ],
  },
});
