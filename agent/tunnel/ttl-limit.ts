/** The notice for a tunnel that expires earlier than `--ttl` asked for. */
import type { Welcome } from "../../protocol/wire/frames.ts";
import { TTL_LIMITS, type TtlLimit } from "../../protocol/wire/ttl-limits.ts";
import { formatComingExpiry } from "../output/format/format-relative-time.ts";

const REASONS: Record<TtlLimit, string> = {
  plan: "the longest time that your plan allows",
  maximum: "the longest time that the service allows",
  existing_tunnel: "because it existed before, and --ttl does not extend it",
};

/** @returns undefined when it expires as requested. */
export function describeTtlLimit({ expiresAt, ttlLimit }: Welcome): string | undefined {
  const limit = TTL_LIMITS.find((name) => name === ttlLimit);
  if (limit === undefined || expiresAt === undefined) return undefined;
  return `the tunnel expires ${formatComingExpiry(expiresAt, Date.now())}, ${REASONS[limit]}`;
}
