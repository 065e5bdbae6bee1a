/** Detecting whether a bundle is up to date. */
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isUpToDate, listFiles, writeStamp } from "../../self-host/build/build-stamp.ts";
import { createTemporaryDir } from "../harness/directories.ts";

const EARLIER = new Date("2026-01-01T00:00:00Z");

let directory: string;
let stamp: string;
let source: string;
beforeEach(async () => {
  directory = await createTemporaryDir();
  stamp = join(directory, "stamp.json");
  source = join(directory, "source.ts");
  await writeSource("one");
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function writeSource(text: string): Promise<void> {
  await writeFile(source, text);
  await utimes(source, EARLIER, EARLIER);
}

test("a bundle is up to date while none of its source files changes", async () => {
  expect(await isUpToDate(stamp)).toBe(false);
  await writeStamp(stamp, [source], Date.now());
  expect(await isUpToDate(stamp)).toBe(true);
});

test("a bundle is outdated after a source file was modified, resized or removed", async () => {
  await writeStamp(stamp, [source], Date.now());
  await utimes(source, EARLIER, new Date(EARLIER.getTime() + 5));
  expect(await isUpToDate(stamp)).toBe(false);
  await writeSource("longer");
  expect(await isUpToDate(stamp)).toBe(false);
  await rm(source);
  expect(await isUpToDate(stamp)).toBe(false);
});

test("a bundle is outdated when a source file changed during the build, or the stamp can't be read", async () => {
  await writeStamp(stamp, [source], Date.now());
  await writeStamp(stamp, [source], EARLIER.getTime());
  expect(await isUpToDate(stamp)).toBe(false);
  await writeFile(stamp, "{");
  expect(await isUpToDate(stamp)).toBe(false);
});

test("source files in subdirectories are listed", async () => {
  await mkdir(join(directory, "pages"));
  await writeFile(join(directory, "pages/a.css"), "");
  expect((await listFiles(directory)).sort()).toEqual([join(directory, "pages/a.css"), source]);
});
