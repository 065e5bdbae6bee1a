/**
 * The credential with which commands that manage an organization call the API: the capability token of the option
 * `--token-file`, or else `UNDERPASS_ACCESS_TOKEN`, or else the capability token of this machine. The access token has no
 * option, because other users of the machine can read arguments.
 */
import { UsageError } from "../options.ts";
import { findToken, isTokenFileFromEnvironment } from "../settings.ts";
import { RejectionError } from "../rejection-error.ts";
import { TOKEN_NOT_ACCEPTED } from "../service-api.ts";
import { PROGRAM } from "../program.ts";

const ACCESS_TOKEN_VARIABLE = "UNDERPASS_ACCESS_TOKEN";
const MASTER_KEY_PREFIX = "mtk_master_";

export class ApiCredential {
  readonly kind: "capability token" | "access token" | "master key";
  readonly bearer: string;
  readonly #renewal: string | undefined;

  /** @param renewal of a capability token. */
  constructor(kind: ApiCredential["kind"], bearer: string, renewal?: string) {
    this.kind = kind;
    this.bearer = bearer;
    this.#renewal = renewal;
  }

  /** Says what the caller can do about a refusal of this credential. */
  explain(rejection: RejectionError): RejectionError {
    const { reason, message } = rejection;
    if (reason === "unauthorized")
      return new RejectionError(reason, this.#explainUnauthorized(), { renewal: this.#renewal });
    if (reason === "forbidden" && this.kind === "capability token") {
      return new RejectionError(
        reason,
        readAccessToken() === undefined
          ? `${message} Run \`${PROGRAM} login\` for a token without restrictions, or set ${ACCESS_TOKEN_VARIABLE}.`
          : `${message} To use ${ACCESS_TOKEN_VARIABLE}, leave out --token-file.`,
      );
    }
    return rejection;
  }

  #explainUnauthorized(): string {
    switch (this.kind) {
      case "capability token":
        return TOKEN_NOT_ACCEPTED;
      case "access token":
        return `the server does not accept ${ACCESS_TOKEN_VARIABLE}: an access token is valid for 15 minutes; get a new one with POST /auth/login, which the server describes at /docs`;
      case "master key":
        return `the server does not accept ${ACCESS_TOKEN_VARIABLE}: a master key only mints tokens of projects, and is refused after it was revoked or has expired`;
    }
  }
}

/**
 * @param tokenFile of the option, or else of its variable in the environment.
 * @throws SettingsError when there is neither an access token nor a capability token.
 */
export async function findCredential(
  server: URL,
  tokenFile: string | undefined,
): Promise<ApiCredential> {
  const bearer = readAccessToken();
  const isFileGiven = tokenFile !== undefined && !isTokenFileFromEnvironment(tokenFile);
  if (isFileGiven || bearer === undefined) {
    const { token, renewal } = await findToken(server, tokenFile);
    return new ApiCredential("capability token", token.toString("base64"), renewal);
  }
  // Other characters can't be sent in a header, and the error of the HTTP client would quote them.
  if (!/^[\w.~+/=-]+$/.test(bearer)) {
    throw new UsageError(`${ACCESS_TOKEN_VARIABLE} is not an access token`);
  }
  const isMasterKey = bearer.startsWith(MASTER_KEY_PREFIX);
  return new ApiCredential(isMasterKey ? "master key" : "access token", bearer);
}

/** @returns undefined when the variable is not set, or empty. */
function readAccessToken(): string | undefined {
  return process.env[ACCESS_TOKEN_VARIABLE]?.trim() || undefined;
}

/**
 * For what an agent's token may not do: a thief of a machine's token must not get further ones with it.
 * @param server its dashboard can do it. @param action continues "can't", for example `mint a token`. @throws UsageError
 */
export function requireAccessToken({ kind }: ApiCredential, server: URL, action: string): void {
  if (kind === "access token") return;
  const reason =
    kind === "master key"
      ? "a master key only mints tokens for a --project"
      : `this machine's own token can't ${action}`;
  const isOverridden = kind === "capability token" && readAccessToken() !== undefined;
  const advice = isOverridden
    ? `leave out --token-file to use ${ACCESS_TOKEN_VARIABLE}`
    : `set ${ACCESS_TOKEN_VARIABLE} to the access token of a signed-in user (POST /auth/login, described at ${new URL("/docs", server).href})`;
  throw new UsageError(
    `${reason}; use ${new URL("/tokens", server).href} in a browser, or ${advice}`,
  );
}
