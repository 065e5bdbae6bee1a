/** Tokens that this service signs for visitors of one tunnel whose policy has `jwt_validation` without issuers. */
import { z } from "zod";
import { VISITOR_TOKEN_SUBJECT_MAX_CHARS } from "../../limits.ts";
import { Instant, VisibleLine, WholeNumber } from "../scalars.ts";

const TTL_DEFAULT_SECONDS = 3_600;
/** A token can't be revoked, so it is short-lived. */
export const VISITOR_TOKEN_MAX_SECONDS = 86_400;

export const MintVisitorToken = z.object({
  subject: VisibleLine(VISITOR_TOKEN_SUBJECT_MAX_CHARS).describe(
    "The claim `sub`: who the visitor is.",
  ),
  ttl_seconds: WholeNumber(1, VISITOR_TOKEN_MAX_SECONDS).default(TTL_DEFAULT_SECONDS),
});

export const MintedVisitorToken = z.object({
  token: z.string().describe("A JWT, which the visitor sends in `Authorization: Bearer`."),
  expiresAt: Instant.describe("When the token expires."),
});
export type MintedVisitorToken = z.output<typeof MintedVisitorToken>;
