import tseslint from "typescript-eslint";
import { importLayers } from "./lint/import-layers.js";

export default tseslint.config(
  { ignores: ["dist", ".wrangler", ".underpass", "node_modules"] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    plugins: { layers: { rules: { imports: importLayers } } },
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
      "layers/imports": "error",
    },
  },
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
          message: "It gives up after a second: pass PATIENT (test/harness/timeouts.ts).",
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
