/** /tokens: what agents show to open tunnels. The bytes are in the answer to minting and nowhere else. */
import { createRoute } from "@hono/zod-openapi";
import { z } from "zod";
import { Ok, PageQuery } from "../../protocol/resources/scalars.ts";
import { MintedToken, MintToken, Nonce, Token } from "../../protocol/resources/tokens.ts";
import { ApiError } from "../errors.ts";
import { toBase64 } from "../identity/encoding.ts";
import { newAgentToken, secondsOf, wireBytesOf } from "../identity/minting.ts";
import { hasPermission } from "../identity/permissions.ts";
import { listTokens, mintToken, revokeToken, type TokenRow } from "../store/tokens.ts";
import { allow } from "./allow.ts";
import { actorOf, answer, failures, jsonBody, newArea, notFound, roleChanged } from "./context.ts";

export const tokens = newArea();

tokens.openapi(
  createRoute({
    method: "get",
    path: "/tokens",
    summary: "List capability tokens",
    ...allow("tokens:read"),
    request: { query: PageQuery },
    responses: {
      200: answer("Newest first.", z.array(Token)),
      ...failures("invalid_request", "unauthorized", "forbidden"),
    },
  }),
  async (c) => {
    const rows = await listTokens(c.var.db, c.var.principal.orgId, c.req.valid("query"));
    return c.json(rows.map(toToken), 200);
  },
);

tokens.openapi(
  createRoute({
    method: "post",
    path: "/tokens",
    summary: "Mint a capability token",
    ...allow("tokens:write"),
    request: { body: jsonBody(MintToken) },
    responses: {
      200: answer("With its bytes, which are shown this once.", MintedToken),
      ...failures("invalid_request", "unauthorized", "forbidden"),
    },
  }),
  async (c) => {
    const token = newAgentToken(c.req.valid("json"));
    const row = await mintToken(c.var.db, actorOf(c), token);
    if (row === "role_changed") throw roleChanged();
    const wireBytes = await wireBytesOf(c.var.config, row);
    return c.json(
      { ...toToken(row), wireBytes: toBase64(wireBytes), wireBytesLen: wireBytes.byteLength },
      200,
    );
  },
);

tokens.openapi(
  createRoute({
    method: "delete",
    path: "/tokens/{nonce}",
    summary: "Revoke a capability token",
    ...allow("tokens:write"),
    request: { params: Nonce },
    responses: {
      200: answer("Its agents are disconnected.", Ok),
      ...failures("unauthorized", "forbidden", "not_found"),
    },
  }),
  async (c) => {
    const mayRevokeOthers = hasPermission(c.var.principal.role, "tokens:write-others");
    const { nonce } = c.req.valid("param");
    const outcome = await revokeToken(c.var.db, actorOf(c), { nonce, mayRevokeOthers });
    switch (outcome) {
      case "revoked":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("such token");
      case "not_yours":
        throw new ApiError("forbidden", "Only an admin may revoke what somebody else has minted.");
    }
  },
);

function toToken(row: TokenRow): Token {
  const { id, name, nonce, kind, tunnelQuota, bandwidthLimitMbps, allowedSubdomains } = row;
  const { projectSlug, monthlyBudgetUsdCents, issuedAt, expiresAt, revokedAt } = row;
  return {
    id,
    name,
    nonce,
    kind,
    tunnelQuota,
    bandwidthLimitMbps,
    allowedSubdomains,
    projectSlug,
    monthlyBudgetUsdCents,
    issuedAt: secondsOf(issuedAt),
    expiresAt: secondsOf(expiresAt),
    revoked: revokedAt !== null,
  };
}
