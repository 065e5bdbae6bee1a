/** The programs of a self-hosted server that run on Node.js, each in a process of its own. */
import { join, resolve } from "node:path";
import { ROOT } from "../build/build.ts";
import { EARLY_COLLECTION, SMALL_YOUNG_GENERATION } from "./v8-flags.ts";

export interface Program {
  flags: readonly string[];
  /** A path below `ROOT`, like those of `laterModules`. */
  entryPoint: string;
  /** Modules that it imports only when it needs them. */
  laterModules: readonly string[];
}

export const PROGRAMS: Record<"server" | "frontProxy" | "relay", Program> = {
  /** package.json repeats this command line for `npm start`. */
  server: {
    flags: SMALL_YOUNG_GENERATION,
    entryPoint: "self-host/start.ts",
    laterModules: ["self-host/gateway/mail-transport.ts"],
  },
  frontProxy: {
    flags: [...SMALL_YOUNG_GENERATION, ...EARLY_COLLECTION],
    entryPoint: "self-host/front-proxy/main.ts",
    laterModules: ["self-host/front-proxy/http2/visitor-session.ts"],
  },
  relay: { flags: [], entryPoint: "relay/main.ts", laterModules: [] },
};

/** @returns the arguments with which Node.js runs it. */
export function getArguments({ flags, entryPoint }: Program): string[] {
  return [...flags, join(ROOT, entryPoint)];
}

/** Where `npm start` keeps compiled modules, below `ROOT`. Only the user who has compiled them can read them. */
export const DEFAULT_COMPILE_CACHE = "node_modules/.cache/node-compile-cache";

/** For the environment of the programs: the cache of compiled modules. */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: resolve(ROOT, process.env.NODE_COMPILE_CACHE || DEFAULT_COMPILE_CACHE),
};
