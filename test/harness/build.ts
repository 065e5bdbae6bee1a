/**
 * Before any test of the node projects, once for all of them: the bundles that the tests serve and run are of
 * today's sources, the browser is unpacked once, not by two test files at the same moment, and servers need not
 * make databases.
 */
import browser from "@sparticuz/chromium";
import { build } from "../../self-host/build/build.ts";
import { isDatabasePrepared, prepareDatabase } from "./directories.ts";
import { startServerPool } from "./server/server-pool.ts";

/** @returns what is done after all tests. */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (isDatabasePrepared()) return undefined;
  const [removeDatabase] = await Promise.all([
    prepareDatabase(),
    build(),
    browser.executablePath(),
  ]);
  const stopServers = await startServerPool();
  return async () => {
    await stopServers();
    await removeDatabase();
  };
}
