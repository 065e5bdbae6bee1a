import { findServerEndpoint, type AccessValues } from "../server-access.ts";
import { findCredential } from "./credential.ts";
import { ManagementApi } from "./management-api.ts";

/** @throws SettingsError when there is no credential for the server; otherwise like `findServerEndpoint`. */
export async function openManagementApi(values: AccessValues): Promise<ManagementApi> {
  const endpoint = await findServerEndpoint(values);
  return new ManagementApi(endpoint, await findCredential(endpoint.server, values["token-file"]));
}
