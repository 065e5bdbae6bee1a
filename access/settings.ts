/**
 * What an owner has put before a tunnel: as its object keeps it, and the part of it that the edge judges by.
 */
import { z } from "zod";
import { AllowList } from "../protocol/schemas/access/edge-auth.ts";
import {
  TrafficPolicy,
  type JwtValidation,
  type RateLimit,
} from "../protocol/schemas/access/policies.ts";
import type { IdentityGate } from "./identity.ts";

/** What an object's answer may tell the edge of a tunnel's gates: the platform bounds header lines. */
const GATES_HEADER_MAX_CHARS = 96 * 1024;

const BasicAuth = z.object({ username: z.string(), passwordHash: z.string() });
export type BasicAuth = z.infer<typeof BasicAuth>;

/** Versions of a tunnel only ever grow. */
export const TunnelSettings = z.object({
  version: z.int(),
  /** What a browser calls the tunnel when it asks for the password. */
  realm: z.string(),
  basicAuth: BasicAuth.nullable(),
  policy: TrafficPolicy.nullable(),
  identityGate: AllowList.extend({ tunnelId: z.uuid() }).nullable().default(null),
  /** Blocks that visitors may come from. null: from anywhere. */
  allowedCidrs: z.array(z.string()).nullable().default(null),
  /** Something of it is not in the owner's plan any more. It stays, and nobody gets through. */
  isBeyondPlan: z.boolean().default(false),
});
export type TunnelSettings = z.infer<typeof TunnelSettings>;
/** As they were published, or kept, by a version that knew fewer gates. */
export type SettingsInput = Omit<TunnelSettings, NewerField> &
  Partial<Pick<TunnelSettings, NewerField>>;
type NewerField = "identityGate" | "allowedCidrs" | "isBeyondPlan";

/** What needs no state of the tunnel to be judged: the same for the edge and the object. */
export interface Gates {
  /** Drawn anew with each change: who knows it has judged by exactly these. No visitor can. */
  seal: string;
  /** Left out by a version that knew no such gate. */
  allowedCidrs?: string[] | null;
  realm: string;
  basicAuth: BasicAuth | null;
  deny: string[];
  jwt: JwtValidation | null;
  identity: IdentityGate | null;
}

/** Otherwise the object judges faster than it reads what the edge found. */
export function isSlow({ basicAuth, identity, jwt }: Gates): boolean {
  return basicAuth !== null || identity !== null || jwt !== null;
}

/** @returns null when there is nothing to judge. */
export function gatesOf(settings: SettingsInput, seal: string): Gates | null {
  const { realm, basicAuth, policy, identityGate: identity = null } = settings;
  const { allowedCidrs = null } = settings;
  const actions = policy?.actions ?? [];
  const deny = actions.flatMap((action) => (action.kind === "deny" ? [action.path_prefix] : []));
  const jwt = actions.find((action) => action.kind === "jwt_validation") ?? null;
  const hasNone = basicAuth === null && identity === null && deny.length === 0 && jwt === null;
  if (hasNone && allowedCidrs === null) return null;
  return { seal, allowedCidrs, realm, basicAuth, identity, deny, jwt };
}

export function rateLimitOf({ policy }: SettingsInput): RateLimit | null {
  return policy?.actions.find((action) => action.kind === "rate_limit") ?? null;
}

/** Names in lower case. Of two values for one name the later holds. */
export function headersOf({ policy }: SettingsInput): Map<string, string> {
  const headers = new Map<string, string>();
  for (const action of policy?.actions ?? []) {
    if (action.kind === "header_set") headers.set(action.name.toLowerCase(), action.value);
  }
  return headers;
}

export function newSeal(): string {
  return crypto.randomUUID();
}

/** In an answer of the object, for the edge to remember. Neither visitors nor agents ever see or set it. */
export const GATES_HEADER = "underpass-gates";

/** What is too long to travel is judged by the object alone: the edge is told of none. */
export function writeGates(gates: Gates | null): string {
  // A header line is not for every character.
  const text = JSON.stringify(gates).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return text.length > GATES_HEADER_MAX_CHARS ? "null" : text;
}

/** @param text of an object of ours. */
export function readGates(text: string): Gates | null {
  return JSON.parse(text) as Gates | null;
}
