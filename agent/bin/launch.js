#!/usr/bin/env node
/** Starts the command of the package. Node.js keeps the compiled code, which makes all later starts faster. */
import * as nodeModule from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

const { XDG_CACHE_HOME, LOCALAPPDATA, NODE_COMPILE_CACHE } = process.env;
if (!NODE_COMPILE_CACHE) {
  try {
    // Not the default, a directory that all users of the machine share. Node.js 20 has no such cache.
    const cache = XDG_CACHE_HOME || LOCALAPPDATA || join(homedir(), ".cache");
    nodeModule.enableCompileCache?.(join(cache, "underpass", "compiled"));
  } catch {
    // The user has no home directory, as in some containers.
  }
}
await import("../dist/underpass.js");
