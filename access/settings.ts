/** The access settings of a tunnel, as the Worker publishes them to the tunnel's object, which stores them. */
import { z } from "zod";
import { AllowList } from "../protocol/schemas/access/identity-gate.ts";
import { TrafficPolicy } from "../protocol/schemas/access/policies.ts";

const BasicAuth = z.object({ username: z.string(), passwordHash: z.string() });
export type BasicAuth = z.infer<typeof BasicAuth>;

/** Fields that earlier versions neither published nor stored, with the values that their absence means. */
const ADDED_FIELDS = { identityGate: null, allowedCidrs: null, isBeyondPlan: false } as const;

export const AccessSettings = z.object({
  /** Versions of a tunnel only increase. */
  version: z.int(),
  /** The tunnel's subdomain, which browsers show when they ask for its password. */
  realm: z.string(),
  basicAuth: BasicAuth.nullable(),
  policy: TrafficPolicy.nullable(),
  identityGate: AllowList.extend({ tunnelId: z.uuid() })
    .nullable()
    .default(ADDED_FIELDS.identityGate),
  /** The address blocks that visitors may come from. null: any address. */
  allowedCidrs: z.array(z.string()).nullable().default(ADDED_FIELDS.allowedCidrs),
  /** A setting is no longer in the owner's plan. It stays stored, and all requests are refused. */
  isBeyondPlan: z.boolean().default(ADDED_FIELDS.isBeyondPlan),
});
export type AccessSettings = z.infer<typeof AccessSettings>;

/** Settings as an earlier version may have published or stored them. */
export type AccessSettingsInput = Omit<AccessSettings, keyof typeof ADDED_FIELDS> &
  Partial<Pick<AccessSettings, keyof typeof ADDED_FIELDS>>;

/** For settings that were validated before they were stored. */
export function fillAddedFields(settings: AccessSettingsInput): AccessSettings {
  return { ...ADDED_FIELDS, ...settings };
}
