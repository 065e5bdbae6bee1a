/** The programs of a server do without the parts of Node.js that take much memory, once their modules are compiled. */
import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";
import { DEFAULT_COMPILE_CACHE, PROGRAMS } from "../../../self-host/processes/programs.ts";
import { createTemporaryDir } from "../../harness/directories.ts";

let cache: string;
beforeAll(async () => {
  cache = await createTemporaryDir();
  await runNode(["self-host/build/compile-programs.ts"]);
});
afterAll(() => rm(cache, { recursive: true }));

async function runNode(args: string[]): Promise<string> {
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: cache };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
  return stdout;
}

/** Lists the parts of Node.js that a program has loaded with its modules, before any of them runs. */
const LIST_PARTS = `data:text/javascript,console.log(process.moduleLoadList.join("\\n")); process.exit()`;

test.each(Object.entries(PROGRAMS))(
  "%s needs neither the TypeScript compiler nor a WebSocket of Node.js",
  async (_, { flags, entryPoint }) => {
    const imports = [LIST_PARTS, `./${entryPoint}`];
    const code = imports.map((path) => `import ${JSON.stringify(path)};`).join("");
    const parts = await runNode([...flags, "--input-type=module", "--eval", code]);
    expect(parts).toContain("NativeModule net");
    expect(parts).not.toContain("internal/deps/amaro");
    expect(parts).not.toContain("internal/deps/undici/undici");
  },
);

test("npm start has the flags and the cache with which the server is compiled", async () => {
  const { scripts } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const { flags, entryPoint } = PROGRAMS.server;
  expect(scripts.start).toMatch(new RegExp(`exec node ${flags.join(" ")} ${entryPoint}$`));
  for (const name of ["start", "relay"]) {
    expect(scripts[name]).toContain(`{NODE_COMPILE_CACHE:-${DEFAULT_COMPILE_CACHE}}`);
  }
});
