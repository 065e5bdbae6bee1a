/** Asks a person at the terminal. */
import { createInterface } from "node:readline";

/**
 * Ctrl+C ends the process as it does where nothing is asked.
 * @returns the answer; null at the end of the input, such as Ctrl+D.
 */
export function ask(question: string): Promise<string | null> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    const endLine = (): void => {
      process.stderr.write("\n");
      resolve(null);
    };
    terminal.once("close", endLine);
    terminal.once("SIGINT", () => {
      terminal.close();
      process.kill(process.pid, "SIGINT");
    });
    terminal.question(question, (answer) => {
      terminal.off("close", endLine);
      terminal.close();
      resolve(answer.trim());
    });
  });
}
