/** /reserved-subdomains: subdomains of the service that are reserved for the tunnels of one organization. */
import { z } from "zod";
import {
  ReservedSubdomain,
  ReserveSubdomain,
} from "../../../protocol/schemas/domains/reserved-subdomains.ts";
import { IdParams, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import {
  listReservedSubdomains,
  releaseSubdomain,
  reserveSubdomain,
  type ReservedSubdomainRow,
} from "../../store/domains/reserved-subdomains.ts";
import { allow, allowRead, readAsCaller } from "../guard.ts";
import { requireUnreservedLabel, subdomainTaken } from "./taken-names.ts";
import { createRouter, getMemberActor, jsonResponse, notFound, route } from "../route.ts";

export const reservedSubdomains = createRouter();

reservedSubdomains.openapi(
  route({
    operationId: "listReservedSubdomains",
    method: "get",
    path: "/reserved-subdomains",
    summary: "List reserved subdomains",
    guard: allowRead("domains:read"),
    query: PageQuery,
    responses: {
      200: jsonResponse("The reserved subdomains, newest first.", z.array(ReservedSubdomain)),
    },
  }),
  async (c) => {
    const page = c.req.valid("query");
    const rows = await readAsCaller(c, (db, orgId) => listReservedSubdomains(db, orgId, page));
    return c.json(rows.map(toReservedSubdomain), 200);
  },
);

reservedSubdomains.openapi(
  route({
    operationId: "reserveSubdomain",
    method: "post",
    path: "/reserved-subdomains",
    summary: "Reserve a subdomain",
    guard: allow("domains:write"),
    body: ReserveSubdomain,
    responses: {
      201: jsonResponse("Reserved. No other organization can use it.", ReservedSubdomain),
    },
    failures: ["upgrade_required", "duplicate_name"],
  }),
  async (c) => {
    const { subdomain } = c.req.valid("json");
    requireUnreservedLabel(subdomain);
    const row = await reserveSubdomain(c.var.db, getMemberActor(c), subdomain);
    if (row === "quota_exceeded") {
      throw new ApiError(
        "upgrade_required",
        "Your plan does not include another reserved subdomain.",
      );
    }
    if (row === "reserved_already") {
      throw new ApiError("duplicate_name", `Your organization has already reserved ${subdomain}.`);
    }
    if ("freeAt" in row) throw subdomainTaken(subdomain, row);
    return c.json(toReservedSubdomain(row), 201);
  },
);

reservedSubdomains.openapi(
  route({
    operationId: "releaseSubdomain",
    method: "delete",
    path: "/reserved-subdomains/{id}",
    summary: "Release a reserved subdomain",
    guard: allow("domains:write"),
    params: IdParams,
    responses: { 200: jsonResponse("Released. Other organizations can use it after a day.", Ok) },
  }),
  async (c) => {
    const isReleased = await releaseSubdomain(c.var.db, getMemberActor(c), c.req.valid("param").id);
    if (!isReleased) throw notFound("reserved subdomain");
    return c.json({ ok: true as const }, 200);
  },
);

function toReservedSubdomain(row: ReservedSubdomainRow): ReservedSubdomain {
  const { id, subdomain, orgId, createdAt } = row;
  return { id, subdomain, organization_id: orgId, created_at: createdAt.toISOString() };
}
