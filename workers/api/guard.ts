/** The guards of routes: who may call them. */
import { createMiddleware } from "hono/factory";
import { createDatabase } from "../jobs/outbox.ts";
import { SESSION_LAST_SEEN_PRECISION_MS } from "../limits.ts";
import { IdParams } from "../../protocol/schemas/scalars.ts";
import { WATCH_BEARER_PREFIX } from "../../protocol/captures/watch-protocol.ts";
import { ApiError } from "../errors.ts";
import { verifyAccessToken } from "../identity/tokens/access-tokens.ts";
import { recognizeMachineToken, verifyUnrestrictedToken } from "../identity/tokens/agent-tokens.ts";
import { isMasterKey, verifyMasterKey } from "../identity/tokens/master-keys.ts";
import { ROLES, type Role } from "../../protocol/roles.ts";
import { hasPermission, type Permission } from "../identity/permissions.ts";
import { isSessionAlive } from "../store/accounts/live-sessions.ts";
import { findPrincipal, recordSessionUse, type Principal } from "../store/accounts/sessions.ts";
import type { Database } from "../store/database.ts";
import { FailedBatchError } from "../store/statement-batch.ts";
import { findAgentToken, findMasterKey } from "../store/tokens/tokens.ts";
import type { SecurityScheme } from "./reference/security.ts";
import {
  notFound,
  runInBackground,
  type ApiContext,
  type ApiEnv,
  type Claimant,
  type Guard,
} from "./route.ts";
import { getOfferedProtocols, isUpgrade, requireUpgrade } from "./upgrade.ts";
import { parseBearerToken } from "../../shared/bearer-token.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";

/** For members of the access token's organization whose role has the permission. */
export function allow(permission: Permission): Guard {
  return createGuard(forMembers(permission), async (c) => {
    await authenticate(c, readBearer(c), permission);
  });
}

/**
 * For the routes under /orgs/{id}: the caller's role in the organization of the path counts, whichever
 * organization the access token names. For a caller who is not a member, the organization does not exist.
 */
export function allowInPathOrganization(permission: Permission): Guard {
  return createGuard(forPathMembers(permission), async (c) => {
    await authenticate(c, readBearer(c), permission, getPathOrganization(c));
  });
}

/** For routes about the caller's own sessions: they can be ended with the access token of an organization that they have left. */
export function allowSession(): Guard {
  return createGuard(forMembers("account:self"), async (c) => {
    const { config, db } = c.var;
    const token = readBearer(c);
    const claims = token === null ? null : await verifyAccessToken(config, token);
    if (!claims) throw unauthorized();
    const { sub: userId, sid: sessionId, org } = claims;
    const principal = isId(org) ? await findPrincipal(db, claims) : null;
    if (!principal && !(await isSessionAlive(db, claims))) throw unauthorized();
    c.set("session", { userId, sessionId, orgId: principal?.orgId ?? null });
  });
}

/**
 * For WebSockets of browsers, which send the access token as one of the subprotocols that they offer, and of programs, which
 * send `Authorization` as to other routes. Agents may call too, as with `allowOrAgent`.
 */
export function allowWatcher(permission: Permission) {
  const described = {
    ...forMembersOrAgents(permission),
    security: ["accessTokenSubprotocol", "accessToken", "capabilityToken"] as const,
  };
  return createGuard(described, async (c) => {
    if (readBearer(c) !== null) return authorizeMemberOrAgent(c, permission);
    const bearer = getOfferedProtocols(c).find((protocol) =>
      protocol.startsWith(WATCH_BEARER_PREFIX),
    );
    await authenticate(c, bearer?.slice(WATCH_BEARER_PREFIX.length) ?? null, permission);
  });
}

/** For the route that accepts a master key too. */
export function allowOrMasterKey(permission: Permission): Guard {
  const described = { ...forMembers(permission), security: ["accessToken", "masterKey"] as const };
  return createGuard(described, async (c) => {
    const bearer = readBearer(c);
    if (bearer !== null && isMasterKey(bearer)) return authenticateMasterKey(c, bearer);
    await authenticate(c, bearer, permission);
  });
}

/** For the descriptions of routes with `allowOrAgent`. */
export const ACCEPTED_BEARERS =
  "The bearer is an access token, or a capability token that is restricted neither to names nor to a project.";

/** For routes that agents may call too, with a capability token that is restricted neither to names nor to a project. */
export function allowOrAgent(permission: Permission): Guard {
  return createGuard(forMembersOrAgents(permission), (c) => authorizeMemberOrAgent(c, permission));
}

/** @throws ApiError unless the caller has the permission now: for a request that `allowOrAgent` let in and that has waited since. */
export async function authorizeMemberOrAgent(c: ApiContext, permission: Permission): Promise<void> {
  const claimant = await verifyMemberOrAgent(c, permission);
  await claimant.checkRights(c.var.db);
}

/** After `allowOrAgent`: the organization whose resources the caller may see. */
export function getOrgId(c: ApiContext): string {
  return c.var.agentToken?.orgId ?? c.var.principal.orgId;
}

/**
 * For routes that begin with reading rows of the caller's organization: these are read in the same request to the database as
 * the caller's rights. The handler must read them with `readAsCaller`.
 */
export function allowRead(permission: Permission): Guard {
  return createReadGuard(forMembers(permission), (c) => verifyMember(c, readBearer(c), permission));
}

/** The same for routes that agents may call too, as with `allowOrAgent`. */
export function allowReadOrAgent(permission: Permission): Guard {
  return createReadGuard(forMembersOrAgents(permission), (c) => verifyMemberOrAgent(c, permission));
}

/** The same for the routes under /orgs/{id}, as with `allowInPathOrganization`. */
export function allowReadInPathOrganization(permission: Permission): Guard {
  return createReadGuard(forPathMembers(permission), (c) =>
    verifyMember(c, readBearer(c), permission, getPathOrganization(c)),
  );
}

const REFUSED_CLAIMANTS_MAX = 1_000;
/** The keys of claimants whose rights did not suffice when they were last checked, such as a thief of a token that was revoked. */
const refusedClaimants = new BoundedMap<string, true>(REFUSED_CLAIMANTS_MAX);

/**
 * After `allowRead`. The rows are read while the caller's rights are checked, and returned only if these suffice. That costs the
 * organization queries, so a caller who is unlikely to have the rights reads nothing before they are checked.
 * @throws ApiError when the rights don't suffice, whatever the outcome of `read`.
 */
export async function readAsCaller<Rows>(
  c: ApiContext,
  read: (db: Database, orgId: string) => Promise<Rows>,
): Promise<Rows> {
  const { orgId, isFromElsewhere, key, checkRights } = c.var.claimant!;
  if (isFromElsewhere || refusedClaimants.has(key)) {
    await checkRights(c.var.db);
    refusedClaimants.delete(key);
    return read(c.var.db, orgId);
  }
  return createDatabase(c.env, orgId).batch(async (db) => {
    const [rights, rows] = await Promise.allSettled([checkRights(db), read(db, orgId)]);
    if (rights.status === "rejected") {
      const reason: unknown = rights.reason;
      if (reason instanceof ApiError) refusedClaimants.set(key, true);
      // The error of the rows in the same batch names the functions that have waited for them.
      const hasBatchFailed = reason instanceof FailedBatchError && rows.status === "rejected";
      throw hasBatchFailed ? rows.reason : reason;
    }
    if (rows.status === "rejected") throw rows.reason;
    return rows.value;
  });
}

function createReadGuard(described: Guard, verify: (c: ApiContext) => Promise<Claimant>): Guard {
  const middleware = createMiddleware<ApiEnv>(async (c, next) => {
    requireAcceptedKind(c, described.security ?? []);
    c.set("claimant", await verify(c));
    await next();
    const { principal, agentToken } = c.var as Partial<ApiEnv["Variables"]>;
    const isChecked = principal !== undefined || agentToken !== undefined;
    if (c.res.ok && !isChecked) throw new Error("the caller's rights were not checked");
  });
  return { ...described, middleware };
}

function verifyMemberOrAgent(c: ApiContext, permission: Permission): Promise<Claimant> {
  const bearer = readBearer(c);
  // An access token contains dots, and base64 does not.
  const isAgent = bearer !== null && !bearer.includes(".");
  return isAgent ? verifyAgent(c, bearer) : verifyMember(c, bearer, permission);
}

async function verifyAgent(c: ApiContext, bearer: string): Promise<Claimant> {
  const token = await verifyUnrestrictedToken(c.var.config, bearer);
  if (token === "restricted") {
    throw new ApiError(
      "forbidden",
      "A token that is restricted to names or to a project can't do this.",
    );
  }
  if (!token) throw unauthorized();
  return {
    orgId: token.orgId,
    isFromElsewhere: false,
    key: `${token.orgId} ${token.nonce}`,
    checkRights: async (db) => {
      const found = await findAgentToken(db, token);
      if (!found) throw unauthorized();
      c.set("agentToken", found);
      attributeDatabase(c, found.orgId);
    },
  };
}

async function authenticateMasterKey(c: ApiContext, bearer: string): Promise<void> {
  const claims = await verifyMasterKey(c.var.config, bearer);
  const masterKey = claims && (await findMasterKey(c.var.db, claims));
  if (!masterKey) throw unauthorized();
  c.set("masterKey", masterKey);
  attributeDatabase(c, masterKey.orgId);
}

/** From now on the queries and transactions of this request count as the organization's. */
function attributeDatabase(c: ApiContext, orgId: string): void {
  c.set("db", createDatabase(c.env, orgId));
}

function readBearer(c: ApiContext): string | null {
  return parseBearerToken(c.req.header("authorization"));
}

/** For a route of agents whose handler verifies the capability token. */
export const tokenVerifiedByHandler: Guard = {
  security: ["capabilityToken"],
  failures: ["unauthorized"],
};

/**
 * For agents, which get a refusal over a WebSocket as a close code. Over plain HTTP, a missing credential is refused
 * before the missing upgrade.
 */
export function requireAgentUpgrade(c: ApiContext, callers: "Agents" | "Clients"): void {
  if (!isUpgrade(c) && readBearer(c) === null) throw unauthorized();
  requireUpgrade(c, callers);
}

function createGuard(described: Guard, check: (c: ApiContext) => Promise<void>) {
  const middleware = createMiddleware<ApiEnv>(async (c, next) => {
    requireAcceptedKind(c, described.security ?? []);
    await check(c);
    await next();
  });
  return { ...described, middleware };
}

const BEARER_NAMES: Partial<Record<SecurityScheme, string>> = {
  accessToken: "an access token",
  capabilityToken: "a capability token",
  masterKey: "a master key",
};

/** Decides by the form of the token alone, and so reveals nothing about one that is not valid. */
function requireAcceptedKind(c: ApiContext, accepted: readonly SecurityScheme[]): void {
  const bearer = readBearer(c);
  const kind = bearer === null ? null : recognizeMachineToken(bearer);
  if (kind === null || accepted.includes(kind)) return;
  const names = accepted.flatMap((scheme) => BEARER_NAMES[scheme] ?? []).join(" or ");
  throw new ApiError(
    "unauthorized",
    `This route does not accept ${BEARER_NAMES[kind]}. Send ${names} in the Authorization header.`,
  );
}

function forMembers(permission: Permission) {
  const isRefused = listRoles(permission).length < ROLES.length;
  return {
    requirement: describeRequirement(permission),
    security: ["accessToken"],
    // No caller is refused a permission that every role has.
    failures: isRefused ? ["unauthorized", "forbidden"] : ["unauthorized"],
  } satisfies Guard;
}

function forPathMembers(permission: Permission) {
  const described = forMembers(permission);
  return { ...described, failures: [...described.failures, "not_found"] } satisfies Guard;
}

function getPathOrganization(c: ApiContext): { orgId: string } {
  return { orgId: c.req.param("id") ?? "" };
}

function forMembersOrAgents(permission: Permission) {
  return {
    requirement: describeRequirement(permission),
    security: ["accessToken", "capabilityToken"],
    failures: ["unauthorized", "forbidden"],
  } satisfies Guard;
}

function listRoles(permission: Permission): Role[] {
  return ROLES.filter((role) => hasPermission(role, permission));
}

const ROLE_LIST = new Intl.ListFormat("en-GB", { type: "conjunction" });

function describeRequirement(permission: Permission): string {
  const roles = listRoles(permission);
  const names = ROLE_LIST.format(roles.map((role) => `\`${role}\``));
  const holders = roles.length === 1 ? `only the role ${names} has` : `the roles ${names} have`;
  const all = roles.length === ROLES.length ? "every role has" : holders;
  return `Requires the permission \`${permission}\`, which ${all}.`;
}

function requirePermission(c: ApiContext, permission: Permission): void {
  const { role } = c.var.principal;
  if (!hasPermission(role, permission)) throw missingPermission(role, permission);
}

const LIST = new Intl.ListFormat("en-GB");

export function missingPermission(role: Role, permission: Permission): ApiError {
  const allowed = listRoles(permission).map((each) => `${each}s`);
  // Admins make members admins, but not owners.
  const helper = allowed.includes("admins") ? "owner or admin" : "owner";
  return new ApiError(
    "forbidden",
    `Only ${LIST.format(allowed)} of the organization can do this (permission ${permission}), and your role is ${role}. An ${helper} can change your role.`,
  );
}

/** @throws ApiError unless the caller is a member with the permission. */
async function authenticate(...caller: Parameters<typeof verifyMember>): Promise<void> {
  const claimant = await verifyMember(...caller);
  const [c] = caller;
  await claimant.checkRights(c.var.db);
}

/** @param path its organization counts instead of the access token's. */
async function verifyMember(
  c: ApiContext,
  token: string | null,
  permission: Permission,
  path?: { orgId: string },
): Promise<Claimant> {
  const claims = token === null ? null : await verifyAccessToken(c.var.config, token);
  if (token === null || !claims) throw unauthorized();
  const orgId = path?.orgId ?? claims.org;
  return {
    orgId,
    isFromElsewhere: orgId !== claims.org,
    key: `${orgId} ${claims.sid} ${permission}`,
    checkRights: async (db) => {
      const principal = isId(orgId) ? await findPrincipal(db, { ...claims, org: orgId }) : null;
      if (!principal) {
        if (path && (await isSessionAlive(db, claims))) throw notFound("organization");
        throw unauthorized();
      }
      c.set("principal", principal);
      c.set("accessToken", token);
      attributeDatabase(c, principal.orgId);
      noteSessionUse(c, principal);
      requirePermission(c, permission);
    },
  };
}

function noteSessionUse(c: ApiContext, { sessionId, lastSeenAt }: Principal): void {
  if (Date.now() - lastSeenAt.getTime() <= SESSION_LAST_SEEN_PRECISION_MS) return;
  const { db, address } = c.var;
  runInBackground(c, "session_use_not_recorded", recordSessionUse(db, { sessionId, ip: address }));
}

export function unauthorized(): ApiError {
  return new ApiError(
    "unauthorized",
    "The bearer token is missing, not valid, expired or revoked. Send a valid one in the Authorization header.",
  );
}

function isId(text: string): boolean {
  return IdParams.safeParse({ id: text }).success;
}
