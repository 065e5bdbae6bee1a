import { findServerRoute, type AccessValues } from "../server-access.ts";
import { findCredential } from "./credential.ts";
import { ManagementApi } from "./management-api.ts";

/** @throws SettingsError when there is no credential for the server; otherwise like `findServerRoute`. */
export async function openManagementApi(values: AccessValues): Promise<ManagementApi> {
  const route = await findServerRoute(values);
  return new ManagementApi(route, await findCredential(route.server, values["token-file"]));
}
