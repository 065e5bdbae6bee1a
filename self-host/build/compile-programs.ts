/**
 * Compiles the modules of the server's programs into their cache. Runs after an installation, and in packages that are
 * installed as another user, as that user. A program whose modules are not in the cache loads Node.js's TypeScript
 * compiler, which takes 25 MiB for as long as the program runs, and needs twice as long to start.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { COMPILE_CACHE, PROGRAMS, type Program } from "../processes/programs.ts";
import { ROOT } from "./build.ts";

/**
 * Node.js loads and compiles all modules of a program before it runs the first one, which is this one. It writes the
 * cache when the process ends.
 */
const EXIT = "data:text/javascript,process.exit()";

async function compile({ flags, entryPoint, laterModules }: Program): Promise<void> {
  const imports = [EXIT, `./${entryPoint}`, ...laterModules.map((path) => `./${path}`)];
  const code = imports.map((path) => `import ${JSON.stringify(path)};`).join("");
  const args = [...flags, "--input-type=module", "--eval", code];
  const env = { ...process.env, ...COMPILE_CACHE };
  try {
    await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
  } catch (error) {
    console.warn(
      `${entryPoint} is not compiled, so its first start takes longer: ${String(error)}`,
    );
  }
}

await Promise.all(Object.values(PROGRAMS).map(compile));
