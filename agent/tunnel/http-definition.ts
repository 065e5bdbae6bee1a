/** An HTTP tunnel as a command line or underpass.yml describes it. */
import { findTarget } from "../files/files-target.ts";
import { UsageError, type OptionValues } from "../options.ts";
import type { ServerAccess } from "../server-access.ts";
import type { HTTP_TUNNEL_OPTIONS } from "./http-options.ts";
import type { HttpTunnelOptions } from "./http-tunnel.ts";
import { getSubdomain, requireSharedName } from "./tunnel-options.ts";

/** The options of the tunnel, without the access to the server. */
export type HttpTunnelDefinition = Omit<HttpTunnelOptions, keyof ServerAccess>;

/**
 * @param targetText the local server, as it was typed.
 * @param baseDirectory where the path of shared files starts. Default: the current directory.
 * @throws UsageError
 */
export function parseHttpTunnel(
  targetText: string,
  values: OptionValues<typeof HTTP_TUNNEL_OPTIONS>,
  baseDirectory?: string,
): HttpTunnelDefinition {
  const directoryListing = values["directory-listing"];
  const target = findTarget(targetText, { directoryListing, baseDirectory });
  const subdomain = getSubdomain(values);
  if (values.url !== undefined && subdomain !== undefined)
    throw new UsageError("use --url or --subdomain, not both");
  if (values.pool) requireSharedName(values.url, subdomain);
  return {
    target,
    publicUrl: values.url,
    gates: { basicAuth: values["basic-auth"], policy: values["policy-file"] },
    originOptions: values,
    pool: values.pool,
    settings: { ...values, subdomain },
  };
}
