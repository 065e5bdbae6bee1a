/** Plugins of esbuild that make the bundles smaller, and cheaper to load. */
import { readFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import type { Plugin } from "esbuild";

/**
 * Parts of libraries that nothing here uses, and that no bundler can leave out:
 *
 * - zod, whose object `z` names all of its parts: fifty languages, the compiler, and the import of JSON Schemas.
 * - Stripe's library: the handlers of notifications, which webhooks do not need, and its numbers of any precision.
 * - nodemailer: its HTTP client, for contents that a mail names by a URL.
 * - `@hono/zod-openapi`: its generators of documents and what they add to every schema. Only its list of routes is left.
 * - undici: everything but the four exports that the agent uses and the method `request` of a pool. The method and `fetch`
 *   are loaded with the first call. HTTP/2 is left out too, because no connection of the agent offers it.
 */
const UNUSED_PARTS: { path: RegExp; contents: string }[] = [
  { path: /zod\/v4\/locales\/index\.js$/, contents: 'export { default as en } from "./en.js";' },
  {
    path: /zod\/v4\/core\/compile\.js$/,
    contents: `
      export const INVALID = undefined, compile = undefined, withParser = undefined;
      export const ZodCompileAsyncError = undefined, ZodCompileUnsupportedError = undefined;`,
  },
  {
    path: /zod\/v4\/classic\/from-json-schema\.js$/,
    contents: "export const fromJSONSchema = undefined;",
  },
  {
    path: /@asteasolutions\/zod-to-openapi\/dist\/index\.mjs$/,
    contents: `
      export class OpenAPIRegistry {
        definitions = [];
        registerPath(route) { this.definitions.push({ type: "route", route }); }
      }
      export const extendZodWithOpenApi = () => {}, getOpenApiMetadata = undefined;
      export const OpenApiGeneratorV3 = undefined, OpenApiGeneratorV31 = undefined;`,
  },
  {
    path: /stripe\/esm\/StripeEventNotificationHandler\.js$/,
    contents: "export class StripeEventNotificationHandler {}",
  },
  { path: /stripe\/esm\/Decimal\.js$/, contents: "export const Decimal = undefined;" },
  { path: /nodemailer\/dist\/esm\/fetch\/index\.js$/, contents: "export default undefined;" },
  {
    // An ES module, so that the build fails when the agent imports a name that is not here.
    path: /undici\/index\.js$/,
    contents: `
      import Dispatcher from "./lib/dispatcher/dispatcher.js";
      Dispatcher.prototype.request = function (...args) {
        return require("./lib/api/api-request.js").apply(this, args);
      };
      export { default as Pool } from "./lib/dispatcher/pool.js";
      export { default as buildConnector } from "./lib/core/connect.js";
      export { default as Agent } from "./lib/dispatcher/agent.js";
      export const fetch = (...args) => require("./lib/web/fetch/index.js").fetch(...args);`,
  },
  { path: /undici\/lib\/dispatcher\/client-h2\.js$/, contents: "module.exports = undefined;" },
];

/** Each resource of the payment provider's API is a class in a file, and its client constructs an object of every one. */
const STRIPE_RESOURCE = /stripe\/esm\/resources\/.*\.js$/;
const USED_STRIPE_RESOURCE =
  /resources\/(?:Customers|Subscriptions|Checkout\/Sessions|BillingPortal\/Sessions)\.js$/;

export const withoutUnusedParts: Plugin = {
  name: "without-unused-parts",
  setup(build) {
    for (const { path, contents } of UNUSED_PARTS)
      build.onLoad({ filter: path }, () => ({ contents }));
    build.onLoad({ filter: STRIPE_RESOURCE }, async ({ path }) => {
      if (USED_STRIPE_RESOURCE.test(path)) return undefined;
      const source = await readFile(path, "utf8");
      const names = Array.from(
        source.matchAll(/^export class (\w+) extends StripeResource/gm),
        (match) => match[1],
      );
      if (names.length === 0) return undefined;
      return { contents: names.map((name) => `export class ${name} {}`).join("\n") };
    });
  },
};

/**
 * Loads modules of Node.js with `process.getBuiltinModule`. An `import` reads all exports of such a module, including those that
 * Node.js makes when they are first read: `import "node:http"` loads Node.js's own undici with its `WebSocket`, 13 MiB. A
 * `require` does not, but takes time to create in each file of the bundle.
 */
export const loadBuiltins: Plugin = {
  name: "load-builtins",
  setup(build) {
    const namespace = "builtin";
    build.onResolve({ filter: /.*/ }, ({ path, kind }) =>
      kind !== "dynamic-import" && isBuiltin(path) ? { path, namespace } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};
