/** The command line that a service manager runs. */
import { isSea } from "node:sea";
import { SettingsError } from "../settings-error.ts";
import { formatUpdateCommand } from "../update-advice.ts";

/** In the path of a package that `npx`, `pnpm dlx` or `yarn dlx` has downloaded. */
const CACHE_DIRECTORY = /[\\/](?:_npx|dlx(?:-[^\\/]*)?)[\\/]/;

/**
 * The absolute paths and arguments of `underpass start --all` with this configuration, for this installation of the agent.
 * @throws SettingsError when the agent runs from a cache: package managers delete their caches at times.
 */
export function getServiceCommand(configPath: string): string[] {
  const script = process.argv[1] ?? "";
  if (!isSea() && CACHE_DIRECTORY.test(script)) {
    throw new SettingsError(
      `npx and similar commands keep the agent in a cache, which a service can't rely on; run: ${formatUpdateCommand()}`,
    );
  }
  const program = isSea() ? [process.execPath] : [process.execPath, script];
  return [...program, "start", "--all", "--config", configPath];
}
