/** /tokens: the capability tokens with which agents open tunnels. Only the response to minting contains the bytes. */
import { z } from "zod";
import { Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import {
  Budget,
  BudgetResult,
  MintedToken,
  MintMasterKey,
  MintToken,
  Nonce,
  Token,
} from "../../../protocol/schemas/tokens.ts";
import { ApiError } from "../../errors.ts";
import { toBase64 } from "../../../shared/bytes.ts";
import { formatMasterKey } from "../../identity/tokens/master-keys.ts";
import {
  newAgentToken,
  newMasterKey,
  newRotatedToken,
  toUnixSeconds,
  signTokenRow,
} from "../../identity/tokens/minting.ts";
import { hasPermission } from "../../identity/permissions.ts";
import { findSpending, setBudget } from "../../store/tokens/spending.ts";
import {
  listTokens,
  mintMasterKey,
  mintToken,
  revokeToken,
  rotateToken,
  type TokenRow,
} from "../../store/tokens/tokens.ts";
import { allow, allowReadOrAgent, readAsCaller } from "../guard.ts";
import {
  createRouter,
  getMemberActor,
  jsonResponse,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";

export const tokens = createRouter();

tokens.openapi(
  route({
    operationId: "listTokens",
    method: "get",
    path: "/tokens",
    summary: "List capability tokens",
    guard: allowReadOrAgent("tokens:read"),
    query: PageQuery,
    responses: { 200: jsonResponse("The tokens, newest first.", z.array(Token)) },
  }),
  async (c) => {
    const page = c.req.valid("query");
    const rows = await readAsCaller(c, (db, orgId) => listTokens(db, orgId, page));
    const lineageIds = rows.map(({ lineageId }) => lineageId);
    const spent =
      rows.length > 0 ? await findSpending(c.var.db.query, lineageIds) : new Map<string, number>();
    const listed = rows.map((row) => toToken(row, spent.get(row.lineageId)));
    return c.json(listed, 200);
  },
);

tokens.openapi(
  route({
    operationId: "mintToken",
    method: "post",
    path: "/tokens",
    summary: "Mint a capability token",
    guard: allow("tokens:write"),
    body: MintToken,
    responses: {
      200: jsonResponse("The token, with its bytes, which are shown only once.", MintedToken),
    },
    failures: ["conflict"],
  }),
  async (c) => {
    const token = newAgentToken(c.req.valid("json"));
    const row = await mintToken(c.var.db, getMemberActor(c), token);
    return c.json(await toMintedToken(c, row), 200);
  },
);

tokens.openapi(
  route({
    operationId: "mintMasterKey",
    method: "post",
    path: "/tokens/master",
    summary: "Mint a master key, which mints project tokens and can't open tunnels",
    guard: allow("tokens:write"),
    body: MintMasterKey,
    responses: {
      200: jsonResponse(
        "The master key, with its bytes and its bearer form, which are shown only once.",
        MintedToken,
      ),
    },
    failures: ["upgrade_required", "conflict"],
  }),
  async (c) => {
    const { config, db } = c.var;
    const { name, ttl_days: ttlDays } = c.req.valid("json");
    const key = newMasterKey(name, ttlDays);
    const row = await mintMasterKey(db, getMemberActor(c), key, config.HOSTED);
    if (row === "upgrade_required") {
      throw new ApiError("upgrade_required", "Your plan does not include master keys.");
    }
    return c.json(await toMintedToken(c, row), 200);
  },
);

tokens.openapi(
  route({
    operationId: "revokeToken",
    method: "delete",
    path: "/tokens/{nonce}",
    summary: "Revoke a capability token",
    description:
      "Revoking a master key revokes all tokens that it minted and that are still valid.",
    guard: allow("tokens:write"),
    params: Nonce,
    responses: { 200: jsonResponse("Revoked. Its agents are disconnected.", Ok) },
  }),
  async (c) => {
    const outcome = await revokeToken(
      c.var.db,
      getMemberActor(c),
      toTokenSelector(c, c.req.valid("param").nonce),
    );
    switch (outcome) {
      case "revoked":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("token", "nonce");
      case "not_yours":
        throw othersToken();
    }
  },
);

tokens.openapi(
  route({
    operationId: "rotateToken",
    method: "post",
    path: "/tokens/{nonce}/rotate",
    summary: "Replace a capability token with a new one",
    description:
      "Tokens that a master key has minted stay valid, and belong to the new key. To revoke them too, delete the key.",
    guard: allow("tokens:write"),
    params: Nonce,
    responses: {
      200: jsonResponse(
        "The new token, with its bytes, which are shown only once. The old one is revoked.",
        MintedToken,
      ),
    },
    failures: ["conflict"],
  }),
  async (c) => {
    const selector = toTokenSelector(c, c.req.valid("param").nonce);
    const row = await rotateToken(c.var.db, getMemberActor(c), selector, newRotatedToken);
    switch (row) {
      case "not_found":
        throw notFound("token", "nonce");
      case "not_active":
        throw notFound("active token", "nonce");
      case "not_yours":
        throw othersToken();
      default: {
        const spent = await findSpending(c.var.db.query, [row.lineageId]);
        return c.json(await toMintedToken(c, row, spent.get(row.lineageId)), 200);
      }
    }
  },
);

tokens.openapi(
  route({
    operationId: "setTokenBudget",
    method: "put",
    path: "/tokens/{nonce}/budget",
    summary: "Set the monthly budget of a token",
    guard: allow("budgets:write"),
    params: Nonce,
    body: Budget,
    responses: {
      200: jsonResponse(
        "The budget is in force. Agents are disconnected when the token exceeds it.",
        BudgetResult,
      ),
    },
    badRequestCode: "invalid_budget",
  }),
  async (c) => {
    const { nonce } = c.req.valid("param");
    const { monthlyBudgetUsdCents } = c.req.valid("json");
    const outcome = await setBudget(c.var.db, getMemberActor(c), { nonce, monthlyBudgetUsdCents });
    switch (outcome) {
      case "set":
        return c.json({ success: true as const, monthlyBudgetUsdCents }, 200);
      case "not_found":
        throw notFound("token", "nonce");
      case "not_active":
        throw notFound("active token", "nonce");
    }
  },
);

function toTokenSelector(c: ApiContext, nonce: string) {
  return { nonce, canRevokeOthers: hasPermission(c.var.principal.role, "tokens:write-others") };
}

function othersToken(): ApiError {
  return new ApiError(
    "forbidden",
    "Only an admin or owner may revoke or rotate a token that another member has minted.",
  );
}

/** Only for responses to minting. */
export async function toMintedToken(
  c: ApiContext,
  row: TokenRow,
  spentUsdCents?: number,
): Promise<MintedToken> {
  const wireBytes = await signTokenRow(c.var.config, row);
  return {
    ...toToken(row, spentUsdCents),
    wireBytes: toBase64(wireBytes),
    wireBytesLen: wireBytes.byteLength,
    ...(row.kind === "master" ? { bearer: formatMasterKey(wireBytes) } : {}),
  };
}

export function toToken(row: TokenRow, spentUsdCents = 0): Token {
  const { id, name, nonce, kind, tunnelQuota, bandwidthLimitMbps, allowedSubdomains } = row;
  const { projectSlug, monthlyBudgetUsdCents, issuedAt, expiresAt, revokedAt } = row;
  const { createdBy, mintedByMasterId } = row;
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
    spentUsdCents,
    issuedAt: toUnixSeconds(issuedAt),
    expiresAt: toUnixSeconds(expiresAt),
    revoked: revokedAt !== null,
    createdBy,
    mintedByMasterId,
  };
}
