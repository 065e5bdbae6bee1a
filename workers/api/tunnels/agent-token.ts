/** The capability token of an agent, or of a client of `underpass connect`: that it is genuine, and which tunnels it is for. */
import { isAllowedLabel } from "../../../protocol/names.ts";
import { fromCanonicalBase64 } from "../../../shared/bytes.ts";
import type { Config } from "../../config/config.ts";
import { getCapabilityTokenKeys } from "../../identity/keys.ts";
import {
  verifyCapabilityToken,
  type TokenPayload,
} from "../../identity/tokens/capability-token.ts";
import { ConnectionRefusedError } from "./refusals.ts";

export const TOKEN_ERRORS = {
  malformed: "the token is unreadable",
  bad_signature: "the token was not signed by this server",
  expired: "the token has expired",
} as const;

/** @throws ConnectionRefusedError unless this server signed the token and it has not expired. It may have been revoked. */
export async function verifyToken(config: Config, bearer: string): Promise<TokenPayload> {
  const bytes = fromCanonicalBase64(bearer);
  if (!bytes) throw new ConnectionRefusedError("unauthorized", TOKEN_ERRORS.malformed);
  const keys = await getCapabilityTokenKeys(config);
  const verdict = await verifyCapabilityToken(bytes, keys, Date.now());
  if ("error" in verdict)
    throw new ConnectionRefusedError("unauthorized", TOKEN_ERRORS[verdict.error]);
  if (verdict.ok.kind !== "agent") {
    throw new ConnectionRefusedError(
      "unauthorized",
      "the token is a master key, which can only mint tokens",
    );
  }
  return verdict.ok;
}

/** @throws ConnectionRefusedError when the token is restricted to another project. */
export function requireProject({ project }: TokenPayload, projectSlug: string): void {
  if (project === null || project === projectSlug) return;
  throw new ConnectionRefusedError(
    "forbidden",
    `the token is restricted to the project ${project}`,
  );
}

/** @throws ConnectionRefusedError when the token is restricted to other subdomains. */
export function requireAllowedSubdomain(
  { allowedSubdomains }: TokenPayload,
  subdomain: string,
): void {
  if (isAllowedLabel(allowedSubdomains, subdomain)) return;
  throw new ConnectionRefusedError(
    "forbidden",
    `the token allows only ${allowedSubdomains.join(", ")}`,
    "name_not_allowed",
  );
}
