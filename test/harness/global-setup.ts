/**
 * Runs once before the tests of the node projects: builds the bundles, unpacks the browser, so that two test files do
 * not do it at the same time, and prepares a database, so that servers need not create one.
 */
import browser from "@sparticuz/chromium";
import { build } from "../../self-host/build/build.ts";
import { isDatabasePrepared, prepareDatabase } from "./directories.ts";
import { startServerPool } from "./server/server-pool.ts";

/** @returns the teardown after all tests. */
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
