/**
 * The agent's settings on this machine: `~/.config/underpass/credentials.json` has one capability token for each server, and
 * is readable by its owner only.
 */
import { chmod, mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { getErrorMessage } from "./error-message.ts";

const DEFAULT_SERVER = "http://127.0.0.1:8787";

const Credentials = z.object({
  servers: z.record(z.string(), z.object({ token: z.base64(), label: z.string() })),
  /** The server of the last login, used when no server is given. */
  defaultServer: z.string().optional(),
});
type Credentials = z.infer<typeof Credentials>;

export class SettingsError extends Error {
  override name = "SettingsError";
}

/** This machine has no token for the server. `command` gets one. */
export class MissingTokenError extends SettingsError {
  readonly command: string;

  constructor(server: URL) {
    const option = server.origin === DEFAULT_SERVER ? "" : ` --server ${server.origin}`;
    const command = `underpass login${option}`;
    super(`this machine has no token for ${server.origin}; run: ${command}`);
    this.command = command;
  }
}

export function getSettingsDirectory(): string {
  const base = process.env["XDG_CONFIG_HOME"] || join(homedir(), ".config");
  return join(base, "underpass");
}

export function getCredentialsPath(): string {
  return join(getSettingsDirectory(), "credentials.json");
}

/** Whether the server is used without a login and without an option. */
export async function isDefaultServer(server: URL): Promise<boolean> {
  return server.origin === DEFAULT_SERVER && (await readCredentials()).defaultServer === undefined;
}

/** @throws SettingsError when the file exists but can't be used. */
async function readCredentials(): Promise<Credentials> {
  const path = getCredentialsPath();
  let text: string;
  try {
    const { mode } = await stat(path);
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new SettingsError(`${path} can be read by other users; run: chmod 600 ${path}`);
    }
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { servers: {} };
    throw error;
  }
  try {
    return Credentials.parse(JSON.parse(text));
  } catch {
    throw new SettingsError(`${path} is damaged; delete it and run: underpass login`);
  }
}

/** Stores the token, and makes its server the default. */
export async function saveCredential(server: URL, token: Buffer, label: string): Promise<string> {
  const directory = getSettingsDirectory();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const credentials = await readCredentials();
  credentials.servers[server.origin] = { token: token.toString("base64"), label };
  credentials.defaultServer = server.origin;
  const path = getCredentialsPath();
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, path);
  return path;
}

/** @throws SettingsError when there is no usable token. */
export async function findToken(server: URL, tokenFile: string | undefined): Promise<Buffer> {
  if (tokenFile !== undefined) {
    try {
      return await readFile(tokenFile);
    } catch (error) {
      throw new SettingsError(`can't read the token file: ${getErrorMessage(error)}`);
    }
  }
  const { servers } = await readCredentials();
  const credential = servers[server.origin];
  if (credential) return Buffer.from(credential.token, "base64");
  throw new MissingTokenError(server);
}

/** @throws SettingsError when it is not an http(s) address. */
export async function findServer(given: string | undefined): Promise<URL> {
  const text = given ?? (await readCredentials()).defaultServer ?? DEFAULT_SERVER;
  try {
    const url = new URL(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`);
    if (url.protocol === "http:" || url.protocol === "https:") return url;
  } catch {
    // Reported below, like a URL of another scheme.
  }
  throw new SettingsError(
    `${text} is not a server address; use a URL such as https://underpass.example`,
  );
}
