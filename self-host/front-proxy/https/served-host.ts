/** Asks the API which hosts belong to this server, because only those get a certificate. */
import { requestStatus } from "../../internal-requests.ts";

/** How long the API may take. */
const LOOK_UP_MAX_MS = 5_000;

interface Api {
  /** One of its host names. */
  host: string;
  /** The path of its socket. */
  socketPath: string;
}

/** Whether a host belongs to this server or to one of its tunnels. Rejects when that can't be known now. */
export async function isServedHost(name: string, { host, socketPath }: Api): Promise<boolean> {
  const path = `/domains/allowed?domain=${encodeURIComponent(name)}`;
  const status = await requestStatus({ socketPath, headers: { host }, path }, LOOK_UP_MAX_MS);
  if (status === 200 || status === 404) return status === 200;
  throw new Error(`the look-up of the host was answered with ${status}`);
}
