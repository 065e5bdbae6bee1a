/** Errors of the agent's settings on this machine. */
import { explainError } from "./error-message.ts";
import { PROGRAM } from "./program.ts";

/** Used without a login and without an option. */
export const DEFAULT_SERVER = "http://localhost:8787";

/** Something that the user can correct on this machine: the saved settings, or a file. Exit code 1. */
export class SettingsError extends Error {
  // As for all errors that programs see: the bundle shortens the names of classes.
  static override readonly name: string = "SettingsError";
  override name = "SettingsError";
}

/**
 * The server or the token file that an option names, or the token of the environment, can't be used: exit code 2.
 * Programs see any other `SettingsError`.
 */
export class InputError extends SettingsError {
  static override readonly name = "SettingsError";
}

/** This machine has no token for the server. `command` gets one. */
export class MissingTokenError extends SettingsError {
  static override readonly name = "SettingsError";
  readonly command: string;

  constructor(server: URL) {
    const isDefault = server.origin === DEFAULT_SERVER;
    const command = `${PROGRAM} login${isDefault ? "" : ` --server ${server.origin}`}`;
    const elsewhere = isDefault ? `, or for another server: ${PROGRAM} login --server URL` : "";
    super(`this machine has no token for ${server.origin}; run: ${command}${elsewhere}`);
    this.command = command;
  }
}

/** The server can't be reached to log in. Without a login, the default server was probably not meant. */
export class UnreachableServerError extends SettingsError {
  static override readonly name = "SettingsError";

  constructor(server: URL, cause: unknown) {
    const isDefault = server.origin === DEFAULT_SERVER;
    const elsewhere = isDefault ? `; for another server, run: ${PROGRAM} login --server URL` : "";
    super(`${explainError(cause)}${elsewhere}`);
  }
}
