/** Checks the settings of HTTPS before anything is started. */
import { join } from "node:path";
import type { HttpsSettings } from "./front-proxy/https/settings.ts";
import { findCertificateProblems, readKeyPair } from "./front-proxy/https/certificate-files.ts";
import { getErrorMessage } from "../shared/error-message.ts";
import { StartError } from "./errors.ts";
import type { Log } from "./log.ts";
import { findUsablePort } from "./processes/ports.ts";
import type { ServerSettings } from "./settings.ts";

/** Its name stands for all names of tunnels. */
const ANY_TUNNEL = "tunnel";
/** In the data directory. */
const CERTIFICATES_DIRECTORY = "certificates";

/**
 * Warns of a certificate that browsers would refuse.
 * @returns undefined when the server itself speaks plain HTTP only.
 * @throws StartError that names the setting, when the files can't be used or a port is in use.
 */
export async function prepareHttps(
  { https, publicPort, apiHosts, serviceDomain, dataDir }: ServerSettings,
  log: Log,
): Promise<HttpsSettings | undefined> {
  if (https === undefined) return undefined;
  const { host, files, acme } = https;
  if (files) {
    const { cert } = await readKeyPair(files).catch((error: unknown) => {
      throw new StartError(getErrorMessage(error));
    });
    const names = acme ? [] : [apiHosts[0] ?? serviceDomain, `${ANY_TUNNEL}.${serviceDomain}`];
    for (const line of findCertificateProblems(cert, names, Date.now())) log.warn(line);
  }
  const find = (port: number, setting: string) =>
    findUsablePort(host, port, { host: "HTTPS_HOST", port: setting });
  const port = await find(https.port, "HTTPS_PORT");
  const redirectPort =
    https.redirectPort === undefined ? null : await find(https.redirectPort, "HTTP_REDIRECT_PORT");
  return {
    host: host ?? null,
    port,
    publicPort: publicPort ?? port,
    redirectPort,
    files: files ?? null,
    acme: acme ? { ...acme, directory: join(dataDir, CERTIFICATES_DIRECTORY) } : null,
  };
}
