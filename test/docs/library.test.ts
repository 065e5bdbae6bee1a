/** docs/library.md and agent/README.md name every option, event and field of the library, and nothing else. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CLOSE, shouldReconnect } from "../../protocol/wire/close-codes.ts";
import { ROOT } from "../../self-host/build/build.ts";

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const types = read("agent/library/types.ts");
const page = read("docs/library.md");
const readme = read("agent/README.md");

/** @returns the members of an interface of the library. */
function listMembers(name: string): string[] {
  const [, body = ""] = new RegExp(`interface ${name} [^{]*{\\n(.*?)\\n}`, "s").exec(types) ?? [];
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??[(:]/gm)].map(([, member]) => member!);
}

/** @returns the names in the first column of the table with this heading. */
function listRows(heading: string): string[] {
  const [, table = ""] =
    new RegExp(`\\n\\| ${heading} +\\|[^\\n]*\\n((?:\\|[^\\n]*\\n)+)`).exec(page) ?? [];
  return [...table.matchAll(/^\| (`[^|]*?) *\|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`(\w+)(?:\(\))?`/g)].map(([, name]) => name!),
  );
}

test.each([
  ["option", "ExposeOptions"],
  ["event", "TunnelEvents"],
  ["field", "RequestReport"],
])("docs/library.md lists every %s", (heading, name) => {
  expect(listMembers(name).length).toBeGreaterThan(3);
  expect(listRows(heading).sort()).toEqual(listMembers(name).sort());
});

test("docs/library.md lists what a tunnel has", () => {
  const members = [...listMembers("PublicTunnel"), ...listMembers("ExposedTunnel")];
  expect(listRows("member").sort()).toEqual(members.sort());
});

test("docs/library.md lists every reason of a rejection", () => {
  // Those of private networks, and of an agent that violates the protocol, do not occur.
  const others = ["protocol_error", "network_deleted"];
  const reasons = Object.entries(CLOSE).flatMap(([name, code]) =>
    shouldReconnect(code) || others.includes(name) ? [] : [name],
  );
  expect(listRows("`reason`").sort()).toEqual(reasons.sort());
});

test("agent/README.md, which npm shows, names every option and event", () => {
  // `expose()` resolves after `ready`.
  const names = [...listMembers("ExposeOptions"), ...listMembers("TunnelEvents")];
  expect(names.filter((name) => name !== "ready" && !readme.includes(`\`${name}\``))).toEqual([]);
});
