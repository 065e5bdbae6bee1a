/**
 * The environment of Node.js programs that tests start: none of the test run's variables but the PATH, and a cache of
 * compiled modules. Hundreds of processes load the same modules, and compiling them is half the work of a start.
 */
import { join } from "node:path";

export const NODE_ENVIRONMENT = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: join(import.meta.dirname, "../../node_modules/.cache/node-compile-cache"),
};
