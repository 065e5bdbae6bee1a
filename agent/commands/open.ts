/** `underpass open`: the dashboard of the server, in a browser. */
import { openInBrowser } from "../output/browser.ts";
import { rejectExtraArguments } from "../options.ts";
import { findServer } from "../settings.ts";
import type { Input } from "./command.ts";
import type { OPEN } from "./table/open.ts";

export async function run({ values, positionals }: Input<typeof OPEN.options>): Promise<number> {
  rejectExtraArguments(positionals);
  const dashboard = new URL("/", await findServer(values.server));
  process.stdout.write(`${dashboard.href}\n`);
  if (!(await openInBrowser(dashboard))) {
    process.stderr.write("There is no browser on this machine; open the address in yours.\n");
  }
  return 0;
}
