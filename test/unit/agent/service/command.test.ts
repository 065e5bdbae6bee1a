/** The command line that a service manager runs. */
import { afterEach, expect, test } from "vitest";
import { getServiceCommand } from "../../../../agent/service/service-command.ts";

const [program = "", script = "", ...rest] = process.argv;
afterEach(() => void (process.argv = [program, script, ...rest]));

test("a service runs this Node.js and the installed script", () => {
  process.argv = [program, "/usr/local/bin/underpass"];
  expect(getServiceCommand("/srv/underpass.yml")).toEqual([
    process.execPath,
    "/usr/local/bin/underpass",
    "start",
    "--all",
    "--config",
    "/srv/underpass.yml",
  ]);
});

test.each([
  ["npx", "/home/me/.npm/_npx/0a1b/node_modules/underpass/bin/launch.js"],
  [
    "npx on Windows",
    "C:\\Users\\me\\AppData\\npm-cache\\_npx\\0a1b\\node_modules\\underpass\\bin\\launch.js",
  ],
  ["pnpm dlx", "/home/me/.cache/pnpm/dlx/0a1b/node_modules/underpass/bin/launch.js"],
  ["yarn dlx", "/tmp/xfs-0a1b/dlx-4711/node_modules/underpass/bin/launch.js"],
])("a service can't use the cache of %s", (_, path) => {
  process.argv = [program, path];
  expect(() => getServiceCommand("/srv/underpass.yml")).toThrow(
    "npm install --global https://SERVER/underpass.tgz",
  );
});
