/** Asks a person before something is done that can't be undone. */
import { escapeControlsInLines } from "../../../shared/text/escape-controls.ts";
import { UsageError } from "../../options.ts";
import { ask } from "../ask.ts";

/**
 * @param question `Delete the tunnel shop?`
 * @param isConfirmed `--yes` was given. @returns whether to go on. @throws UsageError without a terminal.
 */
export async function confirm(question: string, isConfirmed: boolean): Promise<boolean> {
  if (isConfirmed) return true;
  if (!process.stdin.isTTY) {
    throw new UsageError(
      "there is no terminal at which to ask for confirmation; use --yes to confirm",
    );
  }
  const answer = await ask(`${escapeControlsInLines(question)} [y/N] `);
  const isYes = /^y(es)?$/i.test(answer ?? "");
  if (!isYes) process.stderr.write("Nothing was changed.\n");
  return isYes;
}
