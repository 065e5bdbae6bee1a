/** `underpass version`: the version, and with `--json` what a bug report needs. */
import { SERVICE_VERSION } from "../../protocol/version.ts";
import { rejectExtraArguments } from "../options.ts";
import { formatVersion } from "../version.ts";
import { printJson, printLine } from "../output/output.ts";
import type { Input } from "./command.ts";
import type { VERSION } from "./table/version.ts";

export function run({ values, positionals }: Input<typeof VERSION.options>): number {
  rejectExtraArguments(positionals);
  const platform = `${process.platform}-${process.arch}`;
  const details = { version: SERVICE_VERSION, node: process.versions.node, platform };
  if (values.json) printJson(details);
  else printLine(formatVersion());
  return 0;
}
