/**
 * Before any test of the node project: the bundles that the tests serve and run are of today's sources,
 * and the browser is unpacked once, not by two test files at the same moment.
 */
import browser from "@sparticuz/chromium";
import { build } from "../../self-host/build.ts";

export async function setup(): Promise<void> {
  await Promise.all([build(), browser.executablePath()]);
}
