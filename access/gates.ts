/**
 * The gates of a tunnel: the part of its access policy that needs no state of the tunnel, so that the edge and
 * the tunnel's object can both authorize by it. The object sends the gates to the edge in a response header.
 */
import type { JwtValidation } from "../protocol/schemas/access/policies.ts";
import type { GateName } from "../protocol/wire/frames.ts";
import type { IdentityGate } from "./identity.ts";
import { compilePolicy, type PolicyEffects } from "./policy-actions.ts";
import type { BasicAuth, AccessSettings } from "./settings.ts";

export interface Gates {
  /**
   * A nonce that changes with the gates. The edge returns it with its verdict, so that the object accepts only
   * verdicts under the current gates. Visitors cannot know it.
   */
  gatesTag: string;
  /** Absent when an earlier version wrote the header. */
  allowedCidrs?: string[] | null;
  /** The tunnel's subdomain, which browsers show when they ask for its password. */
  realm: string;
  basicAuth: BasicAuth | null;
  deny: string[];
  jwt: JwtValidation | null;
  identity: IdentityGate | null;
}

export function createGatesTag(): string {
  return crypto.randomUUID();
}

/** @returns null when no gate is set. */
export function buildGates(
  settings: AccessSettings,
  gatesTag: string,
  { deny, jwt }: Pick<PolicyEffects, "deny" | "jwt"> = compilePolicy(settings.policy),
): Gates | null {
  const { realm, basicAuth, identityGate: identity, allowedCidrs } = settings;
  const hasGate =
    basicAuth !== null ||
    identity !== null ||
    allowedCidrs !== null ||
    deny.length > 0 ||
    jwt !== null;
  return hasGate ? { gatesTag, allowedCidrs, realm, basicAuth, identity, deny, jwt } : null;
}

/** Without a slow gate, the object authorizes faster than it would verify the edge's verdict. */
export function hasSlowGate({ basicAuth, identity, jwt }: Gates): boolean {
  return basicAuth !== null || identity !== null || jwt !== null;
}

/** @param jwt of the policy. @returns the gates that the tunnel's agent shows to its user. */
export function getGateNames(
  { allowedCidrs, basicAuth, identityGate, policy }: AccessSettings,
  { jwt }: Pick<PolicyEffects, "jwt">,
): GateName[] {
  return [
    ...(basicAuth === null ? [] : ["password" as const]),
    ...(identityGate === null ? [] : ["sign_in" as const]),
    ...(jwt === null ? [] : ["token" as const]),
    ...(allowedCidrs === null ? [] : ["addresses" as const]),
    ...(policy === null || policy.actions.length === 0 ? [] : ["policy" as const]),
  ];
}

/** In responses of the object to the edge, which caches the gates. Visitors and agents never see or set it. */
export const GATES_HEADER = "underpass-gates";
/** The platform bounds header lines. */
const GATES_HEADER_MAX_CHARS = 96 * 1024;

/** Gates that are too long for a header are sent as null: then only the object authorizes. */
export function formatGates(gates: Gates | null): string {
  if (gates === null) return "null";
  const { gatesTag, ...others } = gates;
  // Header values are ASCII; JSON escapes stand for all other characters.
  const text = JSON.stringify({ [TAG_FIELD]: gatesTag, ...others }).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return text.length > GATES_HEADER_MAX_CHARS ? "null" : text;
}

/** @param text a header that a tunnel's object wrote. */
export function parseGates(text: string): Gates | null {
  const fields = JSON.parse(text) as (Omit<Gates, "gatesTag"> & { [TAG_FIELD]: string }) | null;
  if (fields === null) return null;
  const { [TAG_FIELD]: gatesTag, ...others } = fields;
  return { gatesTag, ...others };
}

/** The name of the gates tag in the header, which isolates of earlier versions read, too. */
const TAG_FIELD = "seal";
