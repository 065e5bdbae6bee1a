/** The command line that a service manager runs. */
import { isSea } from "node:sea";
import { SettingsError } from "../settings.ts";

/**
 * The absolute paths and arguments of `underpass start --all` with this configuration, for this installation of the agent.
 * @throws SettingsError when npx runs the agent: npm deletes its cache at times.
 */
export function getServiceCommand(configPath: string): string[] {
  const script = process.argv[1] ?? "";
  if (!isSea() && /[\\/]_npx[\\/]/.test(script)) {
    throw new SettingsError(
      "npx keeps the agent in a cache, which a service can't rely on; run: npm install -g underpass",
    );
  }
  const program = isSea() ? [process.execPath] : [process.execPath, script];
  return [...program, "start", "--all", "--config", configPath];
}
