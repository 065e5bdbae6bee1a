/** The server that a command works with, and how this machine reaches it. */
import { findProxy } from "./outgoing/proxy.ts";
import { readAuthorities, type TrustedAuthorities } from "./outgoing/trusted-authorities.ts";
import { findServer, findToken, type FoundToken } from "./settings.ts";

export interface ServerRoute {
  server: URL;
  /** undefined: those that Node.js trusts. */
  authorities: TrustedAuthorities | undefined;
}

export type ServerAccess = ServerRoute & FoundToken;

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
  const route = await findServerRoute(values);
  return { ...route, ...(await findToken(route.server, values["token-file"])) };
}

/** The same without a token. */
export async function findServerRoute(
  values: Pick<AccessValues, "server" | "ca-file">,
): Promise<ServerRoute> {
  const file = values["ca-file"];
  const authorities = file === undefined ? undefined : await readAuthorities(file);
  const server = await findServer(values.server);
  findProxy(server);
  return { server, authorities };
}
