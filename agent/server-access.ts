/** The server that a command works with, and how this machine reaches it. */
import type { API_OPTIONS } from "./options/access-options.ts";
import type { OptionValues } from "./options.ts";
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

export type AccessValues = OptionValues<typeof API_OPTIONS>;

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
