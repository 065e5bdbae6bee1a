/** Which server and which token the agent uses, and where it takes them from. */
import { stat } from "node:fs/promises";
import {
  findServer,
  findToken,
  getCredentialsPath,
  isDefaultServer,
  isTokenFileFromEnvironment,
  TOKEN_VARIABLE,
} from "../settings.ts";
import { MissingTokenError } from "../settings-error.ts";
import { explainError } from "../error-message.ts";
import type { TrustedAuthorities } from "../outgoing/trusted-authorities.ts";
import type { ServerEndpoint } from "../server-access.ts";
import { ok, problem, warning, type Outcome } from "./check.ts";
import { PROGRAM } from "../program.ts";

/** The options, which the environment may have set. */
export interface SettingsOptions {
  server: string | undefined;
  tokenFile: string | undefined;
  authorities: TrustedAuthorities | undefined;
}

export interface Settings extends ServerEndpoint {
  /** null when this machine has none for the server. */
  token: Buffer | null;
  /** A sentence with the next step of the user when the server does not accept the token. */
  renewal: string;
}

export async function checkSettings(options: SettingsOptions): Promise<Outcome<Settings>> {
  const tried = "reading the options, the environment and the saved logins";
  const { authorities } = options;
  let server: URL;
  try {
    server = await findServer(options.server);
  } catch (error) {
    return problem(tried, explainError(error), `Correct it, and run ${PROGRAM} doctor again.`);
  }
  const from = `server ${server.origin} (${await describeServerSource(options, server)})`;
  const hasVariable =
    options.tokenFile === undefined && Boolean(process.env[TOKEN_VARIABLE]?.trim());
  const path = options.tokenFile ?? getCredentialsPath();
  const source =
    options.tokenFile === undefined ? "the saved login" : describeTokenFile(options.tokenFile);
  try {
    const found = await findToken(server, options.tokenFile);
    const value = { server, authorities, ...found };
    if (hasVariable) return ok(tried, `${from}, token from ${TOKEN_VARIABLE}`, value);
    if (await isReadableByOthers(path)) {
      return warning(
        tried,
        `${from}, token in ${path} (${source}), which other users of this machine can read`,
        `Run: chmod 600 ${path}`,
        value,
      );
    }
    return ok(tried, `${from}, token in ${path} (${source})`, value);
  } catch (error) {
    const value = { server, authorities, token: null, renewal: "" };
    if (error instanceof MissingTokenError) {
      const result = `${from}; this machine has no token for it`;
      return { ...problem(tried, result, `Run: ${error.command}`), value };
    }
    if (hasVariable) {
      const advice = `Correct ${TOKEN_VARIABLE}, or unset it.`;
      return { ...problem(tried, `${from}; ${explainError(error)}`, advice), value };
    }
    const advice = "Correct it, or give --token-file a file that you can read.";
    return { ...problem(tried, `${from}; ${explainError(error)}`, advice), value };
  }
}

async function describeServerSource(options: SettingsOptions, server: URL): Promise<string> {
  if (options.server === undefined) {
    return (await isDefaultServer(server)) ? "the default, without a login" : "the last login";
  }
  return process.env["UNDERPASS_SERVER"] === options.server
    ? "from UNDERPASS_SERVER"
    : "from --server";
}

function describeTokenFile(tokenFile: string): string {
  return isTokenFileFromEnvironment(tokenFile) ? "from UNDERPASS_TOKEN_FILE" : "from --token-file";
}

/** Windows has no such permission bits. */
async function isReadableByOthers(path: string): Promise<boolean> {
  if (process.platform === "win32") return false;
  return ((await stat(path)).mode & 0o077) !== 0;
}
