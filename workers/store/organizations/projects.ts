/** Projects' rows: a project is a namespace of an organization's tunnels, to which tokens can be restricted. */
import { and, eq, gt, isNull, sql } from "drizzle-orm";
import { DEFAULT_PROJECT_SLUG } from "../../../protocol/names.ts";
import { requireRoom } from "../bounds.ts";
import type { UnitOfWork, Database } from "../database.ts";
import { inOrganization, preparedList, type Page } from "../page.ts";
import { lockCaller, type MemberActor } from "../locks.ts";
import { tokens } from "../tables/tokens.ts";
import { tunnels } from "../tables/tunnels.ts";
import { projects } from "../tables/organizations.ts";
import {
  insertTokenRow,
  revokeTokens,
  type MasterKey,
  type NewToken,
  type TokenRow,
  type TokenSelector,
} from "../tokens/tokens.ts";
import type { Transaction } from "../transaction.ts";
import { deleteTunnels } from "../tunnels/lifecycle.ts";

export type ProjectRow = typeof projects.$inferSelect;

const list = preparedList("list_projects", inOrganization(projects), (query, isOnPage) =>
  query
    .select()
    .from(projects)
    .where(and(isOnPage, isNull(projects.deletedAt))),
);

/** Newest first. */
export function listProjects(db: Database, orgId: string, page: Page): Promise<ProjectRow[]> {
  return list(db, orgId, page);
}

function isLiveProject(orgId: string, slug: string) {
  return and(eq(projects.orgId, orgId), eq(projects.slug, slug), isNull(projects.deletedAt));
}

export async function findProject(
  { query }: Database,
  orgId: string,
  slug: string,
): Promise<ProjectRow | null> {
  const [project] = await query.select().from(projects).where(isLiveProject(orgId, slug));
  return project ?? null;
}

/** The project can't be deleted until the transaction ends. @returns its id; null when there is no such project. */
export async function lockProject(
  tx: Transaction,
  orgId: string,
  slug: string,
): Promise<string | null> {
  const [project] = await tx
    .select({ id: projects.id })
    .from(projects)
    .where(isLiveProject(orgId, slug))
    .for("share");
  return project?.id ?? null;
}

export function createProject(
  db: Database,
  actor: MemberActor,
  { slug, name }: { slug: string; name: string },
): Promise<ProjectRow | "duplicate_name"> {
  return db.changeAs(actor, async ({ tx, audit }) => {
    const condition = and(eq(projects.orgId, actor.orgId), isNull(projects.deletedAt));
    await requireRoom(tx, actor.orgId, "projects", { table: projects, condition });
    const [project] = await tx
      .insert(projects)
      .values({ orgId: actor.orgId, slug, name })
      .onConflictDoNothing()
      .returning();
    if (!project) return "duplicate_name";
    audit(actor, "project_created", project.id, { slug });
    return project;
  });
}

/**
 * The slug can't be changed, because it is part of public names. Setting the current name changes nothing and writes no
 * event.
 */
export function renameProject(
  db: Database,
  actor: MemberActor,
  { slug, name }: { slug: string; name: string },
): Promise<ProjectRow | "not_found"> {
  return db.transaction(async ({ tx, audit }) => {
    const [project] = await tx
      .select()
      .from(projects)
      .where(isLiveProject(actor.orgId, slug))
      .for("no key update");
    if (!project) return "not_found";
    if (project.name === name) return project;
    await tx.update(projects).set({ name }).where(eq(projects.id, project.id));
    audit(actor, "project_renamed", project.id, { slug, name });
    return { ...project, name };
  });
}

/**
 * Deletes the project's tunnels and tokens too. Concurrent creations commit before the deletion, or find no project.
 * @returns "not_yours" when another user minted a token of it that is valid and the caller may not revoke.
 */
export function deleteProject(
  db: Database,
  actor: MemberActor,
  { slug, canRevokeOthers }: { slug: string } & Pick<TokenSelector, "canRevokeOthers">,
): Promise<"deleted" | "not_found" | "not_yours" | "is_default"> {
  if (slug === DEFAULT_PROJECT_SLUG) return Promise.resolve("is_default");
  return db.transaction(async (change) => {
    const [project] = await change.tx
      .update(projects)
      .set({ deletedAt: sql`now()` })
      .where(isLiveProject(actor.orgId, slug))
      .returning({ id: projects.id });
    if (!project) return "not_found";
    if (!canRevokeOthers && (await hasTokensOfOthers(change, actor, project.id))) {
      return change.rollback("not_yours");
    }
    // An agent's registration locks tokens before tunnels too; another order could cause a deadlock.
    await revokeTokens(change, actor, eq(tokens.projectId, project.id));
    await deleteTunnels(change, actor, eq(tunnels.projectId, project.id));
    change.audit(actor, "project_deleted", project.id, { slug });
    return "deleted";
  });
}

async function hasTokensOfOthers(
  { tx }: UnitOfWork,
  { userId }: MemberActor,
  projectId: string,
): Promise<boolean> {
  const isValidOfOther = and(
    eq(tokens.projectId, projectId),
    isNull(tokens.revokedAt),
    gt(tokens.expiresAt, sql`now()`),
    sql`${tokens.createdBy} is distinct from ${userId}`,
  );
  return (await tx.$count(tokens, isValidOfOther)) > 0;
}

/** A user who is signed in, or a machine with a master key. */
export type Minter = { member: MemberActor } | { masterKey: MasterKey; ip: string };

type MintRefusal = "not_found" | "master_revoked";

/** Mints a token that is restricted to the project. */
export function mintProjectToken(
  db: Database,
  minter: Minter,
  slug: string,
  token: NewToken,
): Promise<TokenRow | MintRefusal> {
  return db.transaction(async (change) => {
    if ("member" in minter) await lockCaller(change.tx, minter.member);
    const { orgId } = "member" in minter ? minter.member : minter.masterKey;
    const projectId = await lockProject(change.tx, orgId, slug);
    if (projectId === null) return "not_found";
    const projectFields = { projectId, projectSlug: slug };

    if ("member" in minter) {
      const { member } = minter;
      const origin = { ...member, inherited: projectFields, metadata: { project: slug } };
      return insertTokenRow(change, member, token, origin);
    }
    const { masterKey, ip } = minter;
    const creator = await lockMasterKey(change, masterKey);
    if (!creator) return "master_revoked";
    // No user is signed in. The token belongs to the user who minted the master key: both are revoked when they leave.
    const actor = { orgId, userId: null, ip };
    const inherited = { ...projectFields, mintedByMasterId: masterKey.id };
    const metadata = { project: slug, masterNonce: masterKey.nonce };
    return insertTokenRow(change, actor, token, { ...creator, inherited, metadata });
  });
}

/** A concurrent revocation waits for the commit, and then also revokes the token that is minted here. */
async function lockMasterKey({ tx }: UnitOfWork, { id }: MasterKey) {
  const [creator] = await tx
    .select({ userId: tokens.createdBy })
    .from(tokens)
    .where(and(eq(tokens.id, id), isNull(tokens.revokedAt)))
    .for("share");
  return creator;
}
