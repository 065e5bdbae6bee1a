import { findServer } from "../settings.ts";
import { findCredential } from "./credential.ts";
import { ManagementApi } from "./management-api.ts";

interface ApiValues {
  server: string | undefined;
  "token-file": string | undefined;
}

/** @throws SettingsError when there is no credential for the server. */
export async function openManagementApi(values: ApiValues): Promise<ManagementApi> {
  const server = await findServer(values.server);
  return new ManagementApi(server, await findCredential(server, values["token-file"]));
}
