/**
 * The agent's settings on this machine: `credentials.json` in its directory has one capability token for each server, and is
 * readable by its owner only.
 */
import { constants, existsSync } from "node:fs";
import { access, mkdir, readFile, stat } from "node:fs/promises";
import { join, posix, win32 } from "node:path";
import { z } from "zod";
import { explainError } from "./error-message.ts";
import { withFileLock } from "./disk/file-lock.ts";
import { findHomeDirectory } from "./disk/home-directory.ts";
import { UsageError } from "./options.ts";
import { readPrivateFile, writePrivateFile } from "./disk/private-file.ts";
import { DEFAULT_SERVER, InputError, MissingTokenError, SettingsError } from "./settings-error.ts";
import { PROGRAM } from "./program.ts";

/**
 * A capability token in base64, for machines whose secrets are environment variables. It has no option: arguments are
 * public.
 */
export const TOKEN_VARIABLE = "UNDERPASS_TOKEN";

const CREDENTIALS_FILE = "credentials.json";
const LOOPBACK_HOST = /^(localhost|127\.0\.0\.1|\[::1\])([:/]|$)/i;

const Credentials = z.object({
  /** In the order of the logins. */
  servers: z.record(z.string(), z.object({ token: z.base64(), label: z.string() })),
  /** The server of the last login, used when no server is given. */
  defaultServer: z.string().optional(),
});
type Credentials = z.infer<typeof Credentials>;

/** Where to look for the settings. Default: those of this process's user. */
interface SettingsSource {
  environment: NodeJS.ProcessEnv;
  /** The directory of `credentials.json`. */
  directory: string;
}

/**
 * `~/.config/underpass`, or `%APPDATA%\\underpass` on Windows; with `XDG_CONFIG_HOME`, the directory `underpass` there.
 * @throws SettingsError when there is none.
 */
export function getSettingsDirectory(
  environment: NodeJS.ProcessEnv = process.env,
  home = findHomeDirectory(),
  platform = process.platform,
  exists = existsSync,
): string {
  const path = platform === "win32" ? win32 : posix;
  const { XDG_CONFIG_HOME, APPDATA } = environment;
  const parent = XDG_CONFIG_HOME || (home && path.join(home, ".config"));
  if (!parent)
    throw new SettingsError(
      "this user has no home directory for the agent's settings; set HOME or XDG_CONFIG_HOME to a directory",
    );
  const directory = path.join(parent, "underpass");
  if (platform !== "win32" || XDG_CONFIG_HOME || !APPDATA) return directory;
  // Earlier versions used the directory of other systems on Windows, too. It may have private keys.
  return exists(directory) ? directory : path.join(APPDATA, "underpass");
}

export function getCredentialsPath(): string {
  return join(getSettingsDirectory(), CREDENTIALS_FILE);
}

/** Whether the server is used without a login and without an option. */
export async function isDefaultServer(server: URL): Promise<boolean> {
  return server.origin === DEFAULT_SERVER && (await readCredentials()).defaultServer === undefined;
}

/** @throws SettingsError when the file exists but can't be used. */
async function readCredentials(directory = getSettingsDirectory()): Promise<Credentials> {
  const path = join(directory, CREDENTIALS_FILE);
  const found = await stat(path).catch(() => null);
  if (found && !found.isFile())
    throw new SettingsError(`${path} is not a file; move it away, and run: ${PROGRAM} login`);
  const text = await readPrivateFile(path);
  if (text === null) return { servers: {} };
  try {
    return Credentials.parse(JSON.parse(text));
  } catch {
    throw new SettingsError(`${path} is damaged; delete it and run: ${PROGRAM} login`);
  }
}

/**
 * Makes sure that a token can be saved, before the server issues one that would be lost.
 * @throws SettingsError when the directory can't be created or written to, or the file is damaged.
 */
export async function prepareCredentials(): Promise<void> {
  const directory = getSettingsDirectory();
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await access(directory, constants.W_OK);
  } catch (error) {
    throw new SettingsError(
      `a token can't be saved: ${explainError(error)}; XDG_CONFIG_HOME can name another directory`,
    );
  }
  await readCredentials();
}

/** Stores the token, and makes its server the default. Call `prepareCredentials` first. */
export function saveCredential(server: URL, token: Buffer, label: string): Promise<string> {
  return withFileLock(getCredentialsPath(), async () => {
    const { [server.origin]: _previous, ...others } = (await readCredentials()).servers;
    const login = { token: token.toString("base64"), label };
    return writeCredentials({
      servers: { ...others, [server.origin]: login },
      defaultServer: server.origin,
    });
  });
}

/** A login that was removed from this machine. */
interface RemovedLogin {
  path: string;
  /** The token's name on the server. */
  label: string;
  /** The servers whose logins are still saved. */
  remaining: string[];
  /** The one of them that is used when no server is given. */
  defaultServer: string | undefined;
}

/**
 * Removes the saved token of a server, which stays valid. The login before it is then the last one.
 * @throws SettingsError when there is none.
 */
export async function removeCredential(server: URL): Promise<RemovedLogin> {
  // Without it there may be no directory for the lock.
  requireLogin(await readCredentials(), server);
  return withFileLock(getCredentialsPath(), async () => {
    const credentials = await readCredentials();
    const { label } = requireLogin(credentials, server);
    const { [server.origin]: _removed, ...others } = credentials.servers;
    const remaining = Object.keys(others);
    const { defaultServer = server.origin } = credentials;
    const nextDefault = defaultServer === server.origin ? remaining.at(-1) : defaultServer;
    const path = await writeCredentials({ servers: others, defaultServer: nextDefault });
    return { path, label, remaining, defaultServer: nextDefault };
  });
}

function requireLogin({ servers }: Credentials, { origin }: URL): { label: string } {
  const login = servers[origin];
  if (login) return login;
  const saved = Object.keys(servers).join(", ");
  throw new SettingsError(
    saved === ""
      ? `no login is saved on this machine; to log in, run: ${PROGRAM} login`
      : `no login for ${origin} is saved; name another server with --server: ${saved}`,
  );
}

/** @returns the file's path. */
async function writeCredentials(credentials: Credentials): Promise<string> {
  const path = getCredentialsPath();
  await writePrivateFile(path, `${JSON.stringify(credentials, null, 2)}\n`);
  return path;
}

/** A token, and what its user does when the server does not accept it. */
export interface FoundToken {
  token: Buffer;
  /** A sentence. */
  renewal: string;
}

/** The token of the file, or else of `UNDERPASS_TOKEN`, or else of the saved login. @throws SettingsError */
export async function findToken(
  server: URL,
  tokenFile: string | undefined,
  source?: SettingsSource,
): Promise<FoundToken> {
  if (tokenFile !== undefined) {
    const renewal = `Write a valid token to ${tokenFile}, and run the command again.`;
    return { token: await readTokenFile(tokenFile), renewal };
  }
  const variable = (source?.environment ?? process.env)[TOKEN_VARIABLE]?.trim();
  if (variable !== undefined && variable !== "") {
    const renewal = `Set ${TOKEN_VARIABLE} to a valid token, and run the command again.`;
    return { token: decodeTokenVariable(variable), renewal };
  }
  const { servers } = await readCredentials(source?.directory);
  const credential = servers[server.origin];
  if (!credential) throw new MissingTokenError(server);
  const renewal = `Get a new token with \`${PROGRAM} login\`.`;
  return { token: Buffer.from(credential.token, "base64"), renewal };
}

/** Whether the path is that of the variable, and not of the option, which takes precedence. */
export function isTokenFileFromEnvironment(tokenFile: string): boolean {
  return process.env["UNDERPASS_TOKEN_FILE"] === tokenFile;
}

/** @throws InputError when the file can't be read, or is empty. */
export async function readTokenFile(path: string): Promise<Buffer> {
  let content: Buffer;
  try {
    content = await readFile(path);
  } catch (error) {
    throw new InputError(`can't read the token file: ${explainError(error)}`);
  }
  const text = content.toString("latin1").trim();
  if (text === "") throw new InputError(`the token file ${path} is empty; write a token to it`);
  // The first byte of a token is 1, which base64 never contains.
  return isBase64(text) ? Buffer.from(text, "base64") : content;
}

function decodeTokenVariable(text: string): Buffer {
  if (isBase64(text)) return Buffer.from(text, "base64");
  throw new InputError(
    `${TOKEN_VARIABLE} is not a token in base64, as \`${PROGRAM} tokens mint\` prints it; correct or unset it`,
  );
}

function isBase64(text: string): boolean {
  return z.base64().min(1).safeParse(text).success;
}

/** @param directory that of the saved logins. @throws like `parseServerAddress`. */
export async function findServer(given: string | undefined, directory?: string): Promise<URL> {
  const text = given ?? (await readCredentials(directory)).defaultServer ?? DEFAULT_SERVER;
  return parseServerAddress(text);
}

/**
 * Without a scheme, a server of this machine is reached over http, and any other over https.
 * @throws UsageError when the address has more than a scheme, a host and a port; InputError when it is not one.
 */
export function parseServerAddress(text: string): URL {
  if (text.includes(":/") && !/^https?:\/\//i.test(text)) {
    throw new InputError(
      `${text} is not a server address; a URL of a server must begin with https:// or http://`,
    );
  }
  const url = parseAddress(text);
  if (!url) {
    throw new InputError(
      `${text} is not a server address; use a URL such as https://underpass.example`,
    );
  }
  // The API is at the root of the server.
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") {
    throw new UsageError(
      `the server address ${text} must not have a path, a query or a fragment; use ${url.origin}`,
    );
  }
  return url;
}

function parseAddress(text: string): URL | null {
  try {
    const scheme = LOOPBACK_HOST.test(text) ? "http" : "https";
    return new URL(/^https?:\/\//i.test(text) ? text : `${scheme}://${text}`);
  } catch {
    return null;
  }
}
