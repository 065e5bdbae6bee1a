/** The server that a command works with, and how this machine reaches it. */
import { findProxy } from "./outgoing/proxy.ts";
import { readAuthorities, type TrustedAuthorities } from "./outgoing/trusted-authorities.ts";
import { findServer, findToken, type FoundToken } from "./settings.ts";

/** A server's address, and whose certificates are trusted there. */
export interface ServerEndpoint {
  server: URL;
  /** undefined: those that Node.js trusts. */
  authorities: TrustedAuthorities | undefined;
}

export type ServerAccess = ServerEndpoint & FoundToken;

/** The options of every command that uses the API. */
export interface AccessValues {
  server: string | undefined;
  "token-file": string | undefined;
  "ca-file": string | undefined;
}

/**
 * @throws SettingsError when there is no usable token, UsageError when the CA file can't be used, and ProxyError when the
 * environment names a proxy of another kind: no attempt could succeed.
 */
export async function findServerAccess(values: AccessValues): Promise<ServerAccess> {
  const endpoint = await findServerEndpoint(values);
  return { ...endpoint, ...(await findToken(endpoint.server, values["token-file"])) };
}

/** The same without a token. */
export async function findServerEndpoint(
  values: Pick<AccessValues, "server" | "ca-file">,
): Promise<ServerEndpoint> {
  const file = values["ca-file"];
  const authorities = file === undefined ? undefined : await readAuthorities(file);
  const server = await findServer(values.server);
  findProxy(server);
  return { server, authorities };
}
