import tseslint from "typescript-eslint";

/** Who may import whom (ARCHITECTURE.md). Each layer lists what it may not reach. */
const FORBIDDEN = {
  protocol: [
    "durable-objects",
    "workers",
    "agent",
    "relay",
    "shared",
    "self-host",
    "dashboard",
    "bench",
    "test",
  ],
  "durable-objects": [
    "workers",
    "agent",
    "relay",
    "shared",
    "self-host",
    "dashboard",
    "bench",
    "test",
  ],
  workers: ["agent", "relay", "shared", "self-host", "bench", "test"],
  shared: [
    "durable-objects",
    "workers",
    "agent",
    "relay",
    "self-host",
    "dashboard",
    "bench",
    "test",
  ],
  relay: ["durable-objects", "workers", "agent", "self-host", "dashboard", "bench", "test"],
  "workers/edge": ["api", "identity", "store", "background"].map((part) => `workers/${part}`),
  "workers/store": ["api", "edge", "background"].map((part) => `workers/${part}`),
  "workers/payments": ["api", "edge", "store", "background"].map((part) => `workers/${part}`),
  "workers/identity": ["api", "edge", "background"].map((part) => `workers/${part}`),
  agent: ["durable-objects", "workers", "relay", "self-host", "dashboard", "bench", "test"],
  "self-host": ["durable-objects", "agent", "relay", "dashboard", "bench", "test"],
  dashboard: [
    "durable-objects",
    "workers",
    "agent",
    "relay",
    "shared",
    "self-host",
    "bench",
    "test",
  ],
};

function pathsOf(layer) {
  // `durable-objects/relay/` is another folder of that name: only paths that climb out mean the layer.
  if (layer === "relay") return { regex: "^(\\.\\./)+relay/" };
  return { group: [...new Set([`**/${layer}/**`, `**/${layer.split("/").at(-1)}/**`])] };
}

export default tseslint.config(
  { ignores: ["dist", ".wrangler", ".underpass", "node_modules"] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        project: ["./tsconfig{,.node}.json", "./{dashboard,test}/tsconfig.json"],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true },
      ],
      "max-lines": ["error", { max: 400 }],
    },
  },
  ...Object.entries(FORBIDDEN).map(([layer, forbidden]) => ({
    files: [`${layer}/**/*.ts`],
    rules: {
      "no-restricted-imports": [
        "error",
        {
          patterns: forbidden.map((other) => ({
            ...pathsOf(other),
            message: `${layer}/ may not import ${other}/`,
          })),
        },
      ],
    },
  })),
  { files: ["**/*.js"], ...tseslint.configs.disableTypeChecked },
  {
    files: ["test/**/*.ts"],
    rules: {
      "no-restricted-syntax": [
        "error",
        ...[
          "vi'][callee.property.name=/^waitUntil$|^waitFor$/",
          "expect'][callee.property.name='poll'",
        ].map((callee) => ({
          selector: `CallExpression[callee.object.name='${callee}][arguments.length=1]`,
          message: "It gives up after a second: pass PATIENT (test/harness/patience.ts).",
        })),
      ],
    },
  },
  // Tests see the types of Node and of Workers at once, which leaves some globals as any.
  {
    files: ["test/**/*.ts"],
    rules: Object.fromEntries(
      ["argument", "assignment", "call", "member-access", "return"].map((use) => [
        `@typescript-eslint/no-unsafe-${use}`,
        "off",
      ]),
    ),
  },
);
