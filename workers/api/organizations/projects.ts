/**
 * /projects: namespaces of tunnels. The subdomain of a tunnel in a project ends with the slug; a token can be
 * restricted to one project.
 */
import { z } from "zod";
import { toLabelPattern } from "../../../protocol/names.ts";
import {
  CreateProject,
  Project,
  ProjectSlug,
  RenameProject,
} from "../../../protocol/schemas/organizations/projects.ts";
import { Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { MintedToken, MintProjectToken } from "../../../protocol/schemas/tokens.ts";
import { ApiError } from "../../errors.ts";
import { hasPermission } from "../../identity/permissions.ts";
import { newProjectToken } from "../../identity/tokens/minting.ts";
import { hasFeature } from "../../store/billing/plans.ts";
import {
  createProject,
  deleteProject,
  findProject,
  listProjects,
  mintProjectToken,
  renameProject,
  type Minter,
  type ProjectRow,
} from "../../store/organizations/projects.ts";
import { allow, allowRead, allowOrMasterKey, readAsCaller, unauthorized } from "../guard.ts";
import {
  createRouter,
  getMemberActor,
  invalidField,
  jsonResponse,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";
import { toMintedToken } from "../tokens/tokens.ts";

/** The default lifetime of a project token, by who mints it. */
const PROJECT_TOKEN_BY_MASTER_HOURS = 1;
const PROJECT_TOKEN_BY_PERSON_HOURS = 24;

export const projects = createRouter();

projects.openapi(
  route({
    operationId: "listProjects",
    method: "get",
    path: "/projects",
    summary: "List projects",
    guard: allowRead("projects:read"),
    query: PageQuery,
    responses: { 200: jsonResponse("The projects, newest first.", z.array(Project)) },
  }),
  async (c) => {
    const page = c.req.valid("query");
    const rows = await readAsCaller(c, (db, orgId) => listProjects(db, orgId, page));
    return c.json(rows.map(toProject), 200);
  },
);

projects.openapi(
  route({
    operationId: "createProject",
    method: "post",
    path: "/projects",
    summary: "Create a project",
    guard: allow("projects:write"),
    body: CreateProject,
    responses: { 201: jsonResponse("Created. The slug can't be changed.", Project) },
    failures: ["duplicate_name", "conflict"],
  }),
  async (c) => {
    const request = c.req.valid("json");
    const project = await createProject(c.var.db, getMemberActor(c), request);
    switch (project) {
      case "duplicate_name":
        throw new ApiError("duplicate_name", `The slug ${request.slug} is taken.`);
      default:
        return c.json(toProject(project), 201);
    }
  },
);

projects.openapi(
  route({
    operationId: "getProject",
    method: "get",
    path: "/projects/{slug}",
    summary: "Get a project",
    guard: allow("projects:read"),
    params: ProjectSlug,
    responses: { 200: jsonResponse("The project.", Project) },
  }),
  async (c) => {
    const { slug } = c.req.valid("param");
    const project = await findProject(c.var.db, c.var.principal.orgId, slug);
    if (!project) throw notFound("project", "slug");
    return c.json(toProject(project), 200);
  },
);

projects.openapi(
  route({
    operationId: "renameProject",
    method: "patch",
    path: "/projects/{slug}",
    summary: "Rename a project",
    guard: allow("projects:write"),
    params: ProjectSlug,
    body: RenameProject,
    responses: { 200: jsonResponse("Renamed. The slug does not change.", Project) },
  }),
  async (c) => {
    const renamed = { ...c.req.valid("param"), ...c.req.valid("json") };
    const project = await renameProject(c.var.db, getMemberActor(c), renamed);
    if (project === "not_found") throw notFound("project", "slug");
    return c.json(toProject(project), 200);
  },
);

projects.openapi(
  route({
    operationId: "deleteProject",
    method: "delete",
    path: "/projects/{slug}",
    summary: "Delete a project",
    guard: allow("projects:write"),
    params: ProjectSlug,
    responses: { 200: jsonResponse("Deleted. Its tunnels and tokens have ended.", Ok) },
    failures: ["invalid_request"],
  }),
  async (c) => {
    const outcome = await deleteProject(c.var.db, getMemberActor(c), {
      ...c.req.valid("param"),
      canRevokeOthers: hasPermission(c.var.principal.role, "tokens:write-others"),
    });
    switch (outcome) {
      case "deleted":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("project", "slug");
      case "not_yours":
        throw new ApiError(
          "forbidden",
          "The project has tokens that other members have minted. Only an admin or owner may delete it, or revoke them.",
        );
      case "is_default":
        throw new ApiError("invalid_request", "The default project can't be deleted.");
    }
  },
);

projects.openapi(
  route({
    operationId: "mintProjectToken",
    method: "post",
    path: "/projects/{slug}/tokens",
    summary: "Mint a token that is restricted to a project",
    description: "The bearer is an access token or a master key.",
    guard: allowOrMasterKey("tokens:write"),
    params: ProjectSlug,
    body: MintProjectToken,
    responses: {
      200: jsonResponse("The token, with its bytes, which are shown only once.", MintedToken),
    },
    failures: ["upgrade_required", "conflict"],
  }),
  async (c) => {
    const { slug } = c.req.valid("param");
    await requireMasterKeys(c, slug);
    const minter = getMinter(c);
    const request = toTokenRequest(c.req.valid("json"), slug, minter);
    const token = newProjectToken(request, c.var.masterKey);
    const row = await mintProjectToken(c.var.db, minter, slug, token);
    switch (row) {
      case "not_found":
        throw notFound("project", "slug");
      case "master_revoked":
        throw unauthorized();
      default:
        return c.json(await toMintedToken(c, row), 200);
    }
  },
);

/** A master key outlives the plan that included it, and works again when a later plan does. */
async function requireMasterKeys({ var: variables }: ApiContext, slug: string): Promise<void> {
  const { config, db, masterKey } = variables;
  if (!masterKey || !config.HOSTED || hasFeature("master_keys", masterKey, new Date())) return;
  // On every plan, what does not exist is 404.
  if (!(await findProject(db, masterKey.orgId, slug))) throw notFound("project", "slug");
  throw new ApiError("upgrade_required", "Your plan no longer includes master keys.");
}

function getMinter(c: ApiContext): Minter {
  const { masterKey, address } = c.var;
  return masterKey ? { masterKey, ip: address } : { member: getMemberActor(c) };
}

function toTokenRequest(body: z.output<typeof MintProjectToken>, slug: string, minter: Minter) {
  const { name, ttl_hours: requestedHours, allowed_subdomains: patterns } = body;
  const allowedSubdomains = patterns.map((pattern, at) => {
    const labels = toLabelPattern(pattern, slug);
    if (labels !== null) return labels;
    throw invalidField(
      `allowed_subdomains[${at}]`,
      `matches no tunnel of this project, whose subdomains end with -${slug} and have at most 63 characters`,
    );
  });
  const defaultHours =
    "masterKey" in minter ? PROJECT_TOKEN_BY_MASTER_HOURS : PROJECT_TOKEN_BY_PERSON_HOURS;
  return { name, ttlHours: requestedHours ?? defaultHours, allowedSubdomains };
}

function toProject({ id, slug, name, isDefault, createdAt }: ProjectRow): Project {
  return { id, slug, name, isDefault, createdAt: createdAt.toISOString() };
}
