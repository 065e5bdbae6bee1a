/** Asks a person before something is done that can't be undone. */
import { createInterface } from "node:readline";
import { escapeControlsInLines } from "../../../shared/text/escape-controls.ts";
import { UsageError } from "../../options.ts";

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
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await new Promise<string>((resolve) => {
    // Ctrl-C and the end of the input close it without an answer.
    terminal.on("close", () => resolve(""));
    terminal.question(`${escapeControlsInLines(question)} [y/N] `, resolve);
  });
  terminal.close();
  const isYes = /^y(es)?$/i.test(answer.trim());
  if (!isYes) process.stderr.write("Nothing was changed.\n");
  return isYes;
}
