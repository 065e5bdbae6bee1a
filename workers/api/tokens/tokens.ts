/** /tokens: what agents show to open tunnels. The bytes are in the answer to minting and nowhere else. */
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
import { masterKeyBearer } from "../../identity/tokens/master-keys.ts";
import {
  newAgentToken,
  newMasterKey,
  renewedToken,
  secondsOf,
  wireBytesOf,
} from "../../identity/tokens/minting.ts";
import { hasPermission } from "../../identity/permissions.ts";
import { findSpent, setBudget } from "../../store/tokens/spending.ts";
import {
  listTokens,
  mintMasterKey,
  mintToken,
  revokeToken,
  rotateToken,
  type TokenRow,
} from "../../store/tokens/tokens.ts";
import { allow } from "../guard.ts";
import {
  getMemberActor,
  jsonResponse,
  invalidInput,
  createRouter,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";

export const tokens = createRouter();

tokens.openapi(
  route({
    method: "get",
    path: "/tokens",
    summary: "List capability tokens",
    guard: allow("tokens:read"),
    query: PageQuery,
    responses: { 200: jsonResponse("Newest first.", z.array(Token)) },
  }),
  async (c) => {
    const { db, principal } = c.var;
    const rows = await listTokens(db, principal.orgId, c.req.valid("query"));
    const lineageIds = rows.map(({ lineageId }) => lineageId);
    const spent =
      rows.length > 0 ? await findSpent(db.query, lineageIds) : new Map<string, number>();
    const listed = rows.map((row) => toToken(row, spent.get(row.lineageId)));
    return c.json(listed, 200);
  },
);

tokens.openapi(
  route({
    method: "post",
    path: "/tokens",
    summary: "Mint a capability token",
    guard: allow("tokens:write"),
    body: MintToken,
    responses: { 200: jsonResponse("With its bytes, which are shown this once.", MintedToken) },
  }),
  async (c) => {
    const token = newAgentToken(c.req.valid("json"));
    const row = await mintToken(c.var.db, getMemberActor(c), token);
    return c.json(await toMintedToken(c, row), 200);
  },
);

tokens.openapi(
  route({
    method: "post",
    path: "/tokens/master",
    summary: "Mint a master key, which mints tokens of projects and opens no tunnels",
    guard: allow("tokens:write"),
    body: MintMasterKey,
    responses: {
      200: jsonResponse(
        "With its bytes and its bearer form, which are shown this once.",
        MintedToken,
      ),
    },
    failures: ["upgrade_required"],
  }),
  async (c) => {
    const { config, db } = c.var;
    const { name, ttl_days: ttlDays } = c.req.valid("json");
    const key = newMasterKey(name, ttlDays);
    const row = await mintMasterKey(db, getMemberActor(c), key, config.HOSTED);
    if (row === "upgrade_required") {
      throw new ApiError("upgrade_required", "Master keys are not part of your plan.");
    }
    return c.json(await toMintedToken(c, row), 200);
  },
);

tokens.openapi(
  route({
    method: "delete",
    path: "/tokens/{nonce}",
    summary: "Revoke a capability token",
    description: "With a master key go all tokens that it minted.",
    guard: allow("tokens:write"),
    params: Nonce,
    responses: { 200: jsonResponse("Its agents are disconnected.", Ok) },
  }),
  async (c) => {
    const outcome = await revokeToken(
      c.var.db,
      getMemberActor(c),
      toTokenTarget(c, c.req.valid("param").nonce),
    );
    switch (outcome) {
      case "revoked":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("such token");
      case "not_yours":
        throw othersToken();
    }
  },
);

tokens.openapi(
  route({
    method: "post",
    path: "/tokens/{nonce}/rotate",
    summary: "Mint the same token again and revoke the old one",
    guard: allow("tokens:write"),
    params: Nonce,
    responses: {
      200: jsonResponse("The new one, with its bytes, which are shown this once.", MintedToken),
    },
  }),
  async (c) => {
    const name = toTokenTarget(c, c.req.valid("param").nonce);
    const row = await rotateToken(c.var.db, getMemberActor(c), name, renewedToken);
    switch (row) {
      case "not_found":
        throw notFound("such token that is not revoked");
      case "not_yours":
        throw othersToken();
      default: {
        const spent = await findSpent(c.var.db.query, [row.lineageId]);
        return c.json(await toMintedToken(c, row, spent.get(row.lineageId)), 200);
      }
    }
  },
);

tokens.openapi(
  route({
    method: "put",
    path: "/tokens/{nonce}/budget",
    summary: "Cap what a token may spend in a month",
    guard: allow("budgets:write"),
    params: Nonce,
    body: Budget,
    responses: {
      200: jsonResponse("In force; agents that are over it are disconnected.", BudgetResult),
    },
    failures: ["invalid_budget"],
  }),
  async (c) => {
    const { nonce } = c.req.valid("param");
    const { monthlyBudgetUsdCents } = c.req.valid("json");
    const outcome = await setBudget(c.var.db, getMemberActor(c), { nonce, monthlyBudgetUsdCents });
    switch (outcome) {
      case "set":
        return c.json({ success: true as const, monthlyBudgetUsdCents }, 200);
      case "not_found":
        throw notFound("such token");
    }
  },
  (result) => {
    if (result.success) return;
    const [issue] = result.error.issues;
    if (issue?.path[0] !== "monthlyBudgetUsdCents") throw invalidInput(result);
    throw new ApiError("invalid_budget", `monthlyBudgetUsdCents: ${issue.message}.`);
  },
);

function toTokenTarget(c: ApiContext, nonce: string) {
  return { nonce, mayEndOthers: hasPermission(c.var.principal.role, "tokens:write-others") };
}

function othersToken(): ApiError {
  return new ApiError("forbidden", "Only an admin may end what somebody else has minted.");
}

/** For the answer to minting alone. */
export async function toMintedToken(
  c: ApiContext,
  row: TokenRow,
  spentUsdCents?: number,
): Promise<MintedToken> {
  const wireBytes = await wireBytesOf(c.var.config, row);
  return {
    ...toToken(row, spentUsdCents),
    wireBytes: toBase64(wireBytes),
    wireBytesLen: wireBytes.byteLength,
    ...(row.kind === "master" ? { bearer: masterKeyBearer(wireBytes) } : {}),
  };
}

function toToken(row: TokenRow, spentUsdCents = 0): Token {
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
    spentUsdCents,
    issuedAt: secondsOf(issuedAt),
    expiresAt: secondsOf(expiresAt),
    revoked: revokedAt !== null,
  };
}
