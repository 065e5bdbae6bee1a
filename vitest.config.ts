import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { kCurrentWorker } from "miniflare";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "node",
          include: ["test/**/*.test.ts"],
          exclude: ["test/**/*.workerd.test.ts"],
          globalSetup: "test/harness/build.ts",
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        plugins: [
          cloudflareTest({
            main: "./test/harness/objects.ts",
            miniflare: {
              compatibilityDate: "2026-09-18",
              compatibilityFlags: ["enable_request_signal"],
              durableObjects: {
                TUNNEL: { className: "Tunnel", useSQLite: true },
                HOSTNAME: { className: "Hostname", useSQLite: true },
                ADDRESS_LIMITER: { className: "AddressLimiter", useSQLite: true },
              },
              serviceBindings: { ROWS: { name: kCurrentWorker, entrypoint: "Rows" } },
            },
          }),
        ],
        test: { name: "workerd", include: ["test/**/*.workerd.test.ts"] },
      },
    ],
  },
});
