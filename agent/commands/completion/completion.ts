/** `underpass completion`: makes a shell complete command lines of `underpass`. */
import { basename } from "node:path";
import { SHELLS } from "./scripts.ts";
import { formatSuggestion } from "../../options/suggestion.ts";
import { formatChoices, rejectExtraArguments, UsageError } from "../../options.ts";
import type { Input } from "../command.ts";
import type { COMPLETION } from "../table/completion.ts";

export function run({ positionals }: Input<typeof COMPLETION.options>): number {
  const [name, ...rest] = positionals;
  rejectExtraArguments(rest);
  process.stdout.write(name === undefined ? formatInstructions() : getShell(name).script);
  return 0;
}

function getShell(name: string) {
  if (Object.hasOwn(SHELLS, name)) return SHELLS[name as keyof typeof SHELLS];
  const names = Object.keys(SHELLS);
  const suggestion = formatSuggestion(name, names);
  throw new UsageError(`the shell must be ${formatChoices(names)}, not ${name}${suggestion}`);
}

/** For the shell in `$SHELL`, or for all of them. */
function formatInstructions(): string {
  const own = basename(process.env["SHELL"] ?? "");
  const shells = Object.entries(SHELLS);
  const chosen = shells.filter(([name]) => name === own);
  const lines = (chosen.length > 0 ? chosen : shells).map(
    ([name, { install }]) =>
      `For ${name}, run this once and open a new terminal:\n\n  ${install}\n`,
  );
  return `${lines.join("\n")}`;
}
