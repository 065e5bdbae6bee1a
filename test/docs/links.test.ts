/** Links between the documents lead somewhere, and a long document begins with links to its sections. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../../self-host/build/build.ts";

/** Above this many lines, a document needs a list of its sections. */
const LINES_WITHOUT_CONTENTS_MAX = 300;

const documents = execFileSync("git", ["ls-files", "*.md"], { cwd: ROOT, encoding: "utf8" })
  .trim()
  .split("\n");

/** Without blocks of code. */
const readText = (path: string): string =>
  readFileSync(join(ROOT, path), "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");

/** As GitHub makes it from the text of a heading, without that of its links. */
function toAnchor(heading: string): string {
  const text = heading.replaceAll(/\]\([^)]*\)/g, "").toLowerCase();
  return text.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
}

function listAnchors(path: string, level = "#+"): string[] {
  const headings = readText(path).matchAll(new RegExp(`^${level} (.+)$`, "gm"));
  return Array.from(headings, ([, heading]) => toAnchor(heading!));
}

function isBroken(path: string, link: string): boolean {
  const [file = "", anchor] = link.split("#");
  const target = file === "" ? path : join(dirname(path), file);
  if (!existsSync(join(ROOT, target))) return true;
  return anchor !== undefined && !listAnchors(target).includes(anchor);
}

test.each(documents)("the links of %s lead to files and headings", (path) => {
  const links = Array.from(readText(path).matchAll(/\]\(([^)\s]+)\)/g), ([, link]) => link!);
  const inside = links.filter((link) => !/^https?:/.test(link));
  expect(inside.filter((link) => isBroken(path, link))).toEqual([]);
});

test("comments and settings name documents and headings that exist", () => {
  const files = ["*.ts", "*.tsx", "*.js", "*.toml", "*.yml", "*.service", "Dockerfile"];
  const paths = execFileSync("git", ["ls-files", ...files], { cwd: ROOT, encoding: "utf8" });
  const broken = paths
    .trim()
    .split("\n")
    .flatMap((path) => {
      const text = readFileSync(join(ROOT, path), "utf8");
      const named = text.matchAll(/(?<![\w/-])(?:docs\/[\w/-]+|[A-Z]{6,})\.md(?:#[\w-]+)?/g);
      return Array.from(named, ([name]) => ({ path, name }));
    })
    .filter(({ name }) => isBroken("README.md", name));
  expect(broken).toEqual([]);
});

const long = documents.filter(
  (path) => readFileSync(join(ROOT, path), "utf8").split("\n").length > LINES_WITHOUT_CONTENTS_MAX,
);

test.each(long)("%s begins with links to all of its sections, in order", (path) => {
  const [introduction = ""] = readText(path).split(/^## /m);
  const linked = Array.from(introduction.matchAll(/\]\(#([^)]+)\)/g), ([, anchor]) => anchor!);
  const sections = listAnchors(path, "##");
  expect(linked.filter((anchor) => sections.includes(anchor))).toEqual(sections);
});
