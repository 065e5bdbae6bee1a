/** The agent's command as its user types it, for messages that contain commands. */
import { isSea } from "node:sea";

/**
 * `npx underpass` where the user ran that: then there need not be an installed command. The name of an executable file is the
 * one that the user gave it, with its path where it is not installed.
 */
export const PROGRAM = findProgram();

/** @param environment what npx sets for the command that it runs. @param executable undefined: a script of Node.js. */
export function findProgram(
  environment: NodeJS.ProcessEnv = process.env,
  executable = isSea() ? process.argv0 : undefined,
): string {
  if (executable !== undefined) return executable;
  const { npm_lifecycle_event: event, npm_lifecycle_script: script = "" } = environment;
  return event === "npx" && /^["']?underpass\b/.test(script) ? "npx underpass" : "underpass";
}
