/** docs/operators describes each setting that the server and a relay read from the environment, and no others. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RELAY_SETTING_NAMES } from "../../relay/settings.ts";
import { ROOT } from "../../self-host/build/build.ts";
import { SETTING_NAMES } from "../../self-host/settings.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const operations = read("docs/operators/operations.md");

function getPart(from: string, to: string): string {
  const [, rest = ""] = operations.split(from);
  const [part = ""] = rest.split(to);
  expect(part).not.toBe("");
  return part;
}

/** `PAYMENTS_PRICE_{PRO,TEAM}` stands for two names. */
function expandBraces(text: string): string[] {
  const [, before, choices, after] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(text) ?? [];
  if (choices === undefined) return [text];
  return choices.split(",").flatMap((choice) => expandBraces(`${before}${choice}${after}`));
}

test("the table of settings has each setting of `npm start`, once", () => {
  const rows = getPart("## Settings\n", "\n## ").split("\n");
  const cells = rows.flatMap((row) => /^\| (`[^|]+)\|/.exec(row)?.[1] ?? []);
  const names = cells.flatMap((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, name]) => expandBraces(name!)),
  );
  expect(names.toSorted()).toEqual(SETTING_NAMES.toSorted());
});

test("the part about further relays has each setting of `npm run relay`", () => {
  const part = getPart("**More relays.**", "**A relay that is gone**");
  const names = new Set(part.match(/\b(?:RELAY_[A-Z_]+|HOST)\b/g));
  expect([...names].toSorted()).toEqual(RELAY_SETTING_NAMES.toSorted());
});

test("no command and no file of an operator sets another one", () => {
  const folders = ["docs/operators", "packaging"];
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8")),
  );
  const texts = [...files, read("README.md")];
  const set = texts.flatMap((text) => [...text.matchAll(/(?<![\w$-])([A-Z][A-Z0-9_]*)=/g)]);
  const known = new Set([...SETTING_NAMES, ...RELAY_SETTING_NAMES, ...OTHERS]);
  expect(set.length).toBeGreaterThan(40);
  expect(set.map(([, name]) => name!).filter((name) => !known.has(name))).toEqual([]);
});

/** A placeholder, and variables of psql and of Node.js. */
const OTHERS = ["NAME", "PGPASSWORD", "NODE_COMPILE_CACHE"];

test("the server and a relay read no setting without validating it", () => {
  const files = ["self-host", "relay"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => join(folder, name)),
  );
  const names = files.flatMap((file) => read(file).match(/(?<=process\.env\.)\w+/g) ?? []);
  // All of these are of npm, of Node.js, or of the system.
  const platform = ["INIT_CWD", "NODE_COMPILE_CACHE", "PATH", "npm_config_omit"];
  expect([...new Set(names)].toSorted()).toEqual([...platform, "npm_lifecycle_event"]);
});
