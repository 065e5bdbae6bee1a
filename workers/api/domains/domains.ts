/** /domains: custom domains of an organization, which lead to its tunnels. */
import { z } from "zod";
import { parseHost, toRouteName } from "../../../protocol/hosts.ts";
import { TXT_LOOKUP_BURST } from "../../limits.ts";
import {
  CertificateCheckQuery,
  BindDomain,
  ClaimDomain,
  CustomDomain,
} from "../../../protocol/schemas/domains/domains.ts";
import { IdParams, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { checkProof, getProofRecordName } from "../../integrations/dns/domain-proof.ts";
import { buildDomainNotices } from "../../jobs/domain-notices.ts";
import { parseDomain } from "./domain-names.ts";
import { ApiError } from "../../errors.ts";
import { randomSecret } from "../../identity/accounts/codes.ts";
import {
  bindDomain,
  claimDomain,
  findDomain,
  listDomains,
  releaseDomain,
  unbindDomain,
  verifyDomain,
  type DomainRow,
} from "../../store/domains/domains.ts";
import { findRoutes } from "../../store/domains/hostnames.ts";
import { allow, allowRead, readAsCaller } from "../guard.ts";
import { takeToken } from "../rate-limit.ts";
import {
  createRouter,
  getMemberActor,
  jsonResponse,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";
import { tunnelExpired } from "../tunnels/setting-changes.ts";

const TXT_LOOKUP_REFILL_MS = 5_000;

/** Limits the look-ups of one organization. */
const TXT_LOOKUP_RULE = { burst: TXT_LOOKUP_BURST, refillMs: TXT_LOOKUP_REFILL_MS };

export const domains = createRouter();

domains.openapi(
  route({
    operationId: "listDomains",
    method: "get",
    path: "/domains",
    summary: "List custom domains",
    guard: allowRead("domains:read"),
    query: PageQuery,
    responses: { 200: jsonResponse("The domains, newest first.", z.array(CustomDomain)) },
  }),
  async (c) => {
    const page = c.req.valid("query");
    const rows = await readAsCaller(c, (db, orgId) => listDomains(db, orgId, page));
    return c.json(rows.map(toDomain), 200);
  },
);

domains.openapi(
  route({
    operationId: "claimDomain",
    method: "post",
    path: "/domains",
    summary: "Claim a custom domain",
    guard: allow("domains:write"),
    body: ClaimDomain,
    responses: {
      201: jsonResponse(
        "Claimed. The domain must be verified before it can be bound.",
        CustomDomain,
      ),
    },
    failures: ["invalid_name", "duplicate_name", "conflict"],
  }),
  async (c) => {
    const parsed = parseDomain(c.var.config, c.req.valid("json").domain);
    if ("error" in parsed) throw new ApiError("invalid_name", `The domain ${parsed.error}.`);
    const { domain } = parsed;
    const claim = { domain, verificationToken: randomSecret() };
    const row = await claimDomain(c.var.db, getMemberActor(c), claim);
    switch (row) {
      case "claimed_already":
        throw new ApiError("duplicate_name", `Your organization has already claimed ${domain}.`);
      case "too_many":
        throw new ApiError(
          "conflict",
          "Too many domains are not verified yet. Verify or release some of them first.",
        );
      default:
        return c.json(toDomain(row), 201);
    }
  },
);

domains.openapi(
  route({
    operationId: "checkCertificateHost",
    method: "get",
    path: "/domains/allowed",
    summary: "Check whether a TLS proxy may request a certificate for a host",
    description:
      "For proxies that obtain certificates on demand: otherwise visitors could make them request any.",
    query: CertificateCheckQuery,
    responses: { 200: jsonResponse("The host belongs to this service or to a tunnel.", Ok) },
    failures: ["not_found"],
  }),
  async (c) => {
    const { config, db } = c.var;
    const host = parseHost(c.req.valid("query").domain);
    if (host === null) throw unknownHost();
    if (config.API_HOSTS.has(host)) return c.json({ ok: true as const }, 200);
    const routeName = toRouteName(host, config.SERVICE_DOMAIN);
    const route = routeName === null ? null : (await findRoutes(db, [routeName])).get(routeName);
    if (!route?.tunnelId) throw unknownHost();
    return c.json({ ok: true as const }, 200);
  },
);

domains.openapi(
  route({
    operationId: "releaseDomain",
    method: "delete",
    path: "/domains/{id}",
    summary: "Release a custom domain",
    guard: allow("domains:write"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "Released. The domain leads to no tunnel, and any organization can claim it.",
        Ok,
      ),
    },
  }),
  async (c) => {
    const isReleased = await releaseDomain(c.var.db, getMemberActor(c), c.req.valid("param").id);
    if (!isReleased) throw notFound("domain");
    return c.json({ ok: true as const }, 200);
  },
);

domains.openapi(
  route({
    operationId: "verifyDomain",
    method: "post",
    path: "/domains/{id}/verify",
    summary: "Verify a custom domain by its TXT record",
    guard: allow("domains:write"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "Verified. If another organization had verified the domain, it has lost it.",
        CustomDomain,
      ),
    },
    failures: ["verification_failed", "conflict", "unavailable"],
  }),
  async (c) => {
    const { config, db, principal } = c.var;
    const claim = await findDomain(db, principal.orgId, c.req.valid("param").id);
    if (!claim) throw notFound("domain");
    if (claim.verifiedAt && claim.proofMissingSince === null) return c.json(toDomain(claim), 200);
    await requireProof(c, claim);
    const row = await verifyDomain(db, getMemberActor(c), claim, buildDomainNotices(config));
    if (row === "not_found") throw notFound("domain");
    return c.json(toDomain(row), 200);
  },
);

domains.openapi(
  route({
    operationId: "bindDomain",
    method: "put",
    path: "/domains/{id}/bind",
    summary: "Bind a custom domain to a tunnel",
    guard: allow("domains:write"),
    params: IdParams,
    body: BindDomain,
    responses: {
      200: jsonResponse("Bound. Visitors of the domain reach the tunnel.", CustomDomain),
    },
    failures: ["verification_failed", "duplicate_name", "expired"],
  }),
  async (c) => {
    const { tunnel_id: tunnelId } = c.req.valid("json");
    const row = await bindDomain(c.var.db, getMemberActor(c), {
      ...c.req.valid("param"),
      tunnelId,
    });
    switch (row) {
      case "not_found":
        throw notFound("domain");
      case "tunnel_not_found":
        throw notFound("tunnel");
      case "tunnel_expired":
        throw tunnelExpired();
      case "not_http":
        throw new ApiError(
          "invalid_request",
          "A custom domain can only be bound to an HTTP tunnel, and this tunnel is a TCP tunnel.",
        );
      case "not_verified":
        throw new ApiError(
          "verification_failed",
          "The domain is not verified yet. Verify it first.",
        );
      case "duplicate_name":
        throw new ApiError(
          "duplicate_name",
          "This name already leads to another tunnel, or is reserved by another organization.",
        );
      default:
        return c.json(toDomain(row), 200);
    }
  },
);

domains.openapi(
  route({
    operationId: "unbindDomain",
    method: "delete",
    path: "/domains/{id}/bind",
    summary: "Unbind a custom domain",
    guard: allow("domains:write"),
    params: IdParams,
    responses: { 200: jsonResponse("Unbound. The domain remains verified.", Ok) },
  }),
  async (c) => {
    switch (await unbindDomain(c.var.db, getMemberActor(c), c.req.valid("param").id)) {
      case "unbound":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("domain");
    }
  },
);

/** The message names the record to publish, because most failures are a record at another name. */
async function requireProof(c: ApiContext, claim: DomainRow): Promise<void> {
  const name = getProofRecordName(claim.domain);
  await limitLookUps(c);
  const result = await checkProof(c.env, c.var.config, claim);
  if (result === "proven") return;
  if (result === "unavailable") {
    throw new ApiError(
      "unavailable",
      `The TXT records of ${name} can't be looked up right now. Try again later.`,
    );
  }
  const problem =
    result === "no_record"
      ? `There is no TXT record at ${name}.`
      : `No TXT record at ${name} has the right value.`;
  throw new ApiError(
    "verification_failed",
    `${problem} Publish a TXT record with the value ${claim.verificationToken} there.`,
  );
}

/** Every look-up uses a public resolver, which may block a service that sends too many queries. */
async function limitLookUps(c: ApiContext): Promise<void> {
  const key = `look-ups of ${c.var.principal.orgId}`;
  const waitMs = await takeToken(c.env, key, TXT_LOOKUP_RULE);
  if (waitMs === 0) return;
  throw new ApiError(
    "rate_limited",
    "Too many look-ups. A new record takes a while to be visible. Try again later.",
    {
      retryAfterSeconds: Math.ceil(waitMs / 1000),
    },
  );
}

function unknownHost(): ApiError {
  return new ApiError("not_found", "The host belongs neither to this service nor to a tunnel.");
}

function toDomain({
  id,
  domain,
  verifiedAt,
  verificationToken,
  proofMissingSince,
  boundTunnelId,
}: DomainRow): CustomDomain {
  return {
    id,
    domain,
    verified: verifiedAt !== null,
    verificationToken,
    proofMissingSince: proofMissingSince?.toISOString() ?? null,
    boundTunnelId,
  };
}
