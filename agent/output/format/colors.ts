/** Colors on terminals that want them. */
import { styleText } from "node:util";

export const bold = (text: string): string => paint("bold", text);
export const dim = (text: string): string => paint("dim", text);
export const red = (text: string): string => paint("red", text);
export const green = (text: string): string => paint("green", text);
export const yellow = (text: string): string => paint("yellow", text);
export const cyan = (text: string): string => paint("cyan", text);

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Before 22.13, Node.js' own function colors text for files and pipes too, so this one decides. */
function paint(style: Style, text: string): string {
  return isColored(process.env, process.stdout)
    ? styleText(style, text, { validateStream: false })
    : text;
}

/** FORCE_COLOR and NO_COLOR (https://no-color.org) override what the output is. */
export function isColored(env: NodeJS.ProcessEnv, { isTTY }: { isTTY?: boolean }): boolean {
  const { FORCE_COLOR: force, NO_COLOR: no, TERM: terminal } = env;
  if (force) return force !== "0" && force !== "false";
  if (no) return false;
  return Boolean(isTTY) && terminal !== "dumb";
}
