/** The server, the token file and the CA file as keys of underpass.yml, with the checks that `underpass start` makes later. */
import { explainError } from "../error-message.ts";
import { UsageError, type OptionSpecs } from "../options.ts";
import { API_OPTIONS } from "../options/access-options.ts";
import { readAuthorities } from "../outgoing/trusted-authorities.ts";
import { SettingsError } from "../settings-error.ts";
import { parseServerAddress, readTokenFile } from "../settings.ts";

export const CHECKED_ACCESS_OPTIONS = {
  server: { ...API_OPTIONS.server, parse: checkWith(parseServerAddress) },
  "token-file": { ...API_OPTIONS["token-file"], parse: checkWith(readTokenFile) },
  "ca-file": { ...API_OPTIONS["ca-file"], parse: checkWith(readAuthorities) },
} as const satisfies OptionSpecs;

/** @returns a parser that leaves the text as it is. */
function checkWith(read: (text: string) => unknown): (text: string) => Promise<string> {
  return async (text) => {
    try {
      await read(text);
    } catch (error) {
      throw error instanceof SettingsError ? new UsageError(explainError(error)) : error;
    }
    return text;
  };
}
