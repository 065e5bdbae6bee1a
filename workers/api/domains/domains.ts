/** /domains: names of an organization's own, in front of its tunnels. */
import { z } from "zod";
import { parseHost, toRouteName } from "../../../protocol/hosts.ts";
import { TXT_LOOKUP_BURST } from "../../limits.ts";
import {
  AllowedQuery,
  BindDomain,
  ClaimDomain,
  CustomDomain,
} from "../../../protocol/schemas/domains/domains.ts";
import { Id, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { lookUpTxt } from "../../integrations/dns/look-up.ts";
import { getChallengeName, parseDomain } from "./domain-names.ts";
import { ApiError } from "../../errors.ts";
import { randomSecret } from "../../identity/accounts/codes.ts";
import { lookupLimiterObject } from "../../objects.ts";
import { equalInConstantTime } from "../../../shared/constant-time.ts";
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
import { findRoute } from "../../store/domains/hostnames.ts";
import { allow } from "../guard.ts";
import {
  getMemberActor,
  jsonResponse,
  createRouter,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";

const TXT_LOOKUP_REFILL_MS = 5_000;

const LOOK_UP_RULE = { burst: TXT_LOOKUP_BURST, refillMs: TXT_LOOKUP_REFILL_MS };

export const domains = createRouter();

domains.openapi(
  route({
    method: "get",
    path: "/domains",
    summary: "List custom domains",
    guard: allow("domains:read"),
    query: PageQuery,
    responses: { 200: jsonResponse("Newest first.", z.array(CustomDomain)) },
  }),
  async (c) => {
    const rows = await listDomains(c.var.db, c.var.principal.orgId, c.req.valid("query"));
    return c.json(rows.map(toDomain), 200);
  },
);

domains.openapi(
  route({
    method: "post",
    path: "/domains",
    summary: "Claim a domain",
    guard: allow("domains:write"),
    body: ClaimDomain,
    responses: { 201: jsonResponse("Claimed, to be verified.", CustomDomain) },
    failures: ["invalid_name", "duplicate_name", "conflict"],
  }),
  async (c) => {
    const named = parseDomain(c.var.config, c.req.valid("json").domain);
    if ("fault" in named) throw new ApiError("invalid_name", `The domain ${named.fault}.`);
    const { domain } = named;
    const claim = { domain, verificationToken: randomSecret() };
    const row = await claimDomain(c.var.db, getMemberActor(c), claim);
    switch (row) {
      case "duplicate_name":
        throw domainTaken(domain);
      case "claimed_already":
        throw new ApiError("duplicate_name", `Your organization has claimed ${domain} already.`);
      case "too_many":
        throw new ApiError(
          "conflict",
          "Too many claims wait to be verified: verify some, or release them.",
        );
      default:
        return c.json(toDomain(row), 201);
    }
  },
);

domains.openapi(
  route({
    method: "get",
    path: "/domains/allowed",
    summary: "Whether a certificate may be had for a host: for a TLS proxy",
    query: AllowedQuery,
    responses: { 200: jsonResponse("Something of this service answers there.", Ok) },
    failures: ["not_found"],
  }),
  async (c) => {
    const { config, db } = c.var;
    const host = parseHost(c.req.valid("query").domain);
    if (host === null) throw notFound("such host");
    if (config.API_HOSTS.has(host)) return c.json({ ok: true as const }, 200);
    const routeName = toRouteName(host, config.SERVICE_DOMAIN);
    const route = routeName === null ? null : await findRoute(db, routeName);
    if (!route?.tunnelId) throw notFound("such host");
    return c.json({ ok: true as const }, 200);
  },
);

domains.openapi(
  route({
    method: "delete",
    path: "/domains/{id}",
    summary: "Release a domain",
    guard: allow("domains:write"),
    params: Id,
    responses: { 200: jsonResponse("It leads nowhere, and is anybody's to claim.", Ok) },
  }),
  async (c) => {
    const isReleased = await releaseDomain(c.var.db, getMemberActor(c), c.req.valid("param").id);
    if (!isReleased) throw notFound("such domain");
    return c.json({ ok: true as const }, 200);
  },
);

domains.openapi(
  route({
    method: "post",
    path: "/domains/{id}/verify",
    summary: "Look for the TXT record that proves a claim",
    guard: allow("domains:write"),
    params: Id,
    responses: {
      200: jsonResponse("It is there; once found it is not looked for again.", CustomDomain),
    },
    failures: ["verification_failed", "duplicate_name", "rate_limited", "unavailable"],
  }),
  async (c) => {
    const { db, principal } = c.var;
    const claim = await findDomain(db, principal.orgId, c.req.valid("param").id);
    if (!claim) throw notFound("such domain");
    if (claim.verifiedAt) return c.json(toDomain(claim), 200);
    await requireProof(c, claim);
    const row = await verifyDomain(db, getMemberActor(c), claim);
    switch (row) {
      case "not_found":
        throw notFound("such domain");
      case "duplicate_name":
        throw domainTaken(claim.domain);
      default:
        return c.json(toDomain(row), 200);
    }
  },
);

domains.openapi(
  route({
    method: "put",
    path: "/domains/{id}/bind",
    summary: "Lead a domain to a tunnel",
    guard: allow("domains:write"),
    params: Id,
    body: BindDomain,
    responses: { 200: jsonResponse("Its visitors reach the tunnel.", CustomDomain) },
    failures: ["verification_failed", "duplicate_name"],
  }),
  async (c) => {
    const { tunnel_id: tunnelId } = c.req.valid("json");
    const row = await bindDomain(c.var.db, getMemberActor(c), {
      ...c.req.valid("param"),
      tunnelId,
    });
    switch (row) {
      case "not_found":
        throw notFound("such domain");
      case "tunnel_not_found":
        throw notFound("such tunnel");
      case "not_http":
        throw new ApiError(
          "invalid_request",
          "The tunnel carries TCP. A domain can lead only to a tunnel that carries HTTP.",
        );
      case "not_verified":
        throw new ApiError("verification_failed", "The domain has to be verified first.");
      case "duplicate_name":
        throw new ApiError("duplicate_name", "The domain leads to another tunnel.");
      default:
        return c.json(toDomain(row), 200);
    }
  },
);

domains.openapi(
  route({
    method: "delete",
    path: "/domains/{id}/bind",
    summary: "Lead a domain nowhere",
    guard: allow("domains:write"),
    params: Id,
    responses: { 200: jsonResponse("It stays verified.", Ok) },
  }),
  async (c) => {
    switch (await unbindDomain(c.var.db, getMemberActor(c), c.req.valid("param").id)) {
      case "unbound":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("such domain");
    }
  },
);

/** What is looked up is told as it is to be published: most failures are a record at another name. */
async function requireProof(
  c: ApiContext,
  { domain, verificationToken }: DomainRow,
): Promise<void> {
  const name = getChallengeName(domain);
  await limitLookUps(c);
  const texts = await lookUpTxt(c.env, c.var.config, name);
  if (texts === null) {
    throw new ApiError("unavailable", `The TXT records of ${name} can't be looked up now.`);
  }
  if (texts.some((text) => equalInConstantTime(text, verificationToken))) return;
  const found = texts.length === 0 ? "no TXT record" : "other TXT records";
  throw new ApiError(
    "verification_failed",
    `There is ${found} at ${name}: publish ${verificationToken} there.`,
  );
}

/** Each asks somebody else's resolver, who would tell one who asks too often from nobody. */
async function limitLookUps(c: ApiContext): Promise<void> {
  const waitMs = await lookupLimiterObject(c.env, c.var.principal.orgId).take(LOOK_UP_RULE);
  if (waitMs === 0) return;
  throw new ApiError("rate_limited", "Too many look-ups. Records take a while to be seen: wait.", {
    retryAfterSeconds: Math.ceil(waitMs / 1000),
  });
}

function domainTaken(domain: string): ApiError {
  return new ApiError("duplicate_name", `Another organization has verified ${domain}.`);
}

function toDomain({
  id,
  domain,
  verifiedAt,
  verificationToken,
  boundTunnelId,
}: DomainRow): CustomDomain {
  return { id, domain, verified: verifiedAt !== null, verificationToken, boundTunnelId };
}
