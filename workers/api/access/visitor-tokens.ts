/** /tunnels/{id}/visitor-tokens: tokens for the visitors of a tunnel whose policy has `jwt_validation` without issuers. */
import {
  MintedVisitorToken,
  MintVisitorToken,
} from "../../../protocol/schemas/access/visitor-tokens.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { signVisitorToken } from "../../identity/visitors/visitor-tokens.ts";
import { recordVisitorToken } from "../../store/access/visitor-tokens.ts";
import { allow } from "../guard.ts";
import { createRouter, getMemberActor, jsonResponse, route } from "../route.ts";
import { toSettingError } from "../tunnels/setting-changes.ts";

export const visitorTokens = createRouter();

visitorTokens.openapi(
  route({
    operationId: "mintVisitorToken",
    method: "post",
    path: "/tunnels/{id}/visitor-tokens",
    summary: "Mint a token for a visitor of a tunnel",
    description:
      "The visitor sends it as `Authorization: Bearer`. It is accepted by this tunnel's `jwt_validation` if that names no issuer, and nowhere else. It can't be revoked.",
    guard: allow("tokens:write"),
    params: IdParams,
    body: MintVisitorToken,
    responses: {
      200: jsonResponse("The token, which is shown only once.", MintedVisitorToken),
    },
    failures: ["expired"],
  }),
  async (c) => {
    const { config, db } = c.var;
    const { id: tunnelId } = c.req.valid("param");
    const { subject, ttl_seconds: ttlSeconds } = c.req.valid("json");
    // Whole seconds, like the claim `exp`.
    const expiresAt = new Date((Math.floor(Date.now() / 1000) + ttlSeconds) * 1000);
    const token = { subject, expiresAt };
    const tunnel = await recordVisitorToken(db, getMemberActor(c), tunnelId, token);
    if (typeof tunnel === "string") throw toSettingError(tunnel);
    const host = `${tunnel.subdomain}.${config.SERVICE_DOMAIN}`;
    const signed = await signVisitorToken(config, { ...token, tunnelId, host });
    return c.json({ token: signed, expiresAt: expiresAt.toISOString() }, 200);
  },
);
