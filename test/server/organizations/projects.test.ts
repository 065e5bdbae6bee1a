import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { Project } from "../../../protocol/schemas/organizations/projects.ts";
import type { MintedToken, Token } from "../../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  getSocket,
  mintToken,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

let count = 0;
async function createProject(by = owner): Promise<Project> {
  const { body } = await by.post<Project>("/projects", {
    slug: `project-${++count}`,
    name: "Made",
  });
  return body;
}
const mintIn = (slug: string, body: object = {}) =>
  owner.post<MintedToken>(`/projects/${slug}/tokens`, { name: "test", ...body });

test("every organization has a default project, which cannot be deleted", async () => {
  const other = await api.owner();
  const { body } = await other.get<Project[]>("/projects");
  expect(body).toEqual([
    {
      id: expect.any(String),
      slug: "default",
      name: "Default",
      isDefault: true,
      createdAt: expect.any(String),
    },
  ]);
  expect(await other.delete("/projects/default")).toMatchObject({
    status: 400,
    body: { error: "invalid_request" },
  });
  expect((await other.get<Project>("/projects/default")).body).toEqual(body[0]);
});

test("a project is created, read, listed and renamed; its slug cannot be changed", async () => {
  const { status, body } = await owner.post<Project>("/projects", { slug: "web", name: " Web " });
  expect([status, body.name, body.isDefault]).toEqual([201, "Web", false]);
  expect((await owner.get<Project>("/projects/web")).body).toEqual(body);
  const renamed = await owner.patch<Project>("/projects/web", { name: "Site", slug: "site" });
  expect(renamed).toMatchObject({ status: 200, body: { ...body, name: "Site" } });
  expect((await owner.get<Project[]>("/projects")).body).toContainEqual(renamed.body);
  expect((await owner.get("/projects/site")).status).toBe(404);
});

test.each([
  ["an upper-case slug", { slug: "Web", name: "x" }, "slug"],
  ["a slug that ends with a hyphen", { slug: "web-", name: "x" }, "slug"],
  ["a slug of 64 characters", { slug: "a".repeat(64), name: "x" }, "slug"],
  ["no slug", { name: "x" }, "slug"],
  ["no name", { slug: "nameless" }, "name"],
  ["an empty name", { slug: "nameless", name: " " }, "name"],
])("refuses %s", async (_, body, field) => {
  expect(await owner.post("/projects", body)).toMatchObject({
    status: 400,
    body: { error: "invalid_request", fields: [{ path: field }] },
  });
});

test("a slug is unique in an organization, also with concurrent requests", async () => {
  const [other, body] = [await api.owner(), { slug: "raced", name: "x" }];
  const attempts = Array.from({ length: 20 }, () => owner.post("/projects", body));
  const statuses = (await Promise.all(attempts)).map(({ status }) => status).sort();
  expect(statuses).toEqual([201, ...Array<number>(19).fill(409)]);
  expect(await owner.post("/projects", body)).toMatchObject({ body: { error: "duplicate_name" } });
  expect((await other.post("/projects", body)).status).toBe(201);
  await owner.delete("/projects/raced");
  expect((await owner.post("/projects", body)).status).toBe(201);
});

describe("a tunnel without a name", () => {
  const createIn = (projectSlug: string) =>
    owner.post<Tunnel & ErrorBody>("/tunnels", { localPort: 1, projectSlug });

  test.each([47, 53])("gets one that fits before a slug of %d characters", async (length) => {
    const slug = "p".repeat(length);
    await owner.post("/projects", { slug, name: "Long" });
    for (let count = 1; count <= 3; count++) {
      const { status, body } = await createIn(slug);
      expect([status, body.subdomain]).toEqual([201, expect.stringMatching(/^.{9,15}-p+$/)]);
    }
    const { body: token } = await mintIn(slug);
    const agent = await api.connectAgent(token.wireBytes, { port: 1 });
    expect(agent.code).toBeUndefined();
    agent.socket?.close();
  });

  test("is refused because of the slug where no random name fits", async () => {
    const slug = "p".repeat(54);
    await owner.post("/projects", { slug, name: "Too long" });
    const message =
      "leaves 8 of 63 characters for a name, too few for a random one: choose a subdomain";
    expect(await createIn(slug)).toMatchObject({
      status: 400,
      body: { error: "invalid_request", fields: [{ path: "projectSlug", message }] },
    });
    const { body: token } = await mintIn(slug);
    const agent = await api.connectAgent(token.wireBytes, { port: 1 });
    expect([agent.code, agent.reason]).toEqual([
      CLOSE.invalid_request,
      `invalid_request: the project's slug ${message}`,
    ]);
  });
});

describe("deleting one", () => {
  test("ends its tunnels and tokens, frees its names, and touches nothing else", async () => {
    const { slug } = await createProject();
    const { body: token } = await mintIn(slug);
    const { body: outside } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
    const agent = await api.connectAgent(token.wireBytes, { port: 1, subdomain: "api" });
    const closed = once(getSocket(agent), "close");
    expect(await owner.delete(`/projects/${slug}`)).toMatchObject({ status: 200 });
    expect([CLOSE.tunnel_deleted, CLOSE.unauthorized]).toContain((await closed)[0]);

    const tunnels = (await owner.get<Tunnel[]>("/tunnels")).body.map(({ id }) => id);
    expect(tunnels).toContain(outside.id);
    const names = (await owner.get<Tunnel[]>("/tunnels")).body.map(({ subdomain }) => subdomain);
    expect(names).not.toContain(`api-${slug}`);
    const tokens = (await owner.get<Token[]>("/tokens")).body;
    expect(tokens.find(({ nonce }) => nonce === token.nonce)?.revoked).toBe(true);
    expect((await owner.get(`/projects/${slug}`)).status).toBe(404);
    expect((await owner.delete(`/projects/${slug}`)).status).toBe(404);
    expect((await mintIn(slug)).status).toBe(404);
    const freed = { localPort: 1, subdomain: `api-${slug}` };
    expect((await owner.post("/tunnels", freed)).status).toBe(201);
  });

  test("with a valid token that another member minted requires the permission to revoke it", async () => {
    const member = await api.colleague(owner, "member");
    const { slug } = await createProject();
    await member.post(`/projects/${slug}/tokens`, { name: "own" });
    const { body: token } = await mintIn(slug);
    const refused = await member.delete<ErrorBody>(`/projects/${slug}`);
    expect([refused.status, refused.body.error]).toEqual([403, "forbidden"]);
    expect(refused.body.message).toContain("other members have minted");
    const { body: tokens } = await owner.get<Token[]>("/tokens");
    expect(tokens.find(({ nonce }) => nonce === token.nonce)?.revoked).toBe(false);
    await owner.delete(`/tokens/${token.nonce}`);
    expect((await member.delete(`/projects/${slug}`)).status).toBe(200);
  });

  test("leaves no tunnel and no token that is created at the same time", async () => {
    const { id, slug } = await createProject();
    const tokens = await Promise.all(Array.from({ length: 10 }, () => mintIn(slug)));
    const rotating = tokens.map(({ body }) => owner.post(`/tokens/${body.nonce}/rotate`));
    const minting = Array.from({ length: 10 }, () => mintIn(slug));
    const reserving = Array.from({ length: 10 }, () =>
      owner.post("/tunnels", { localPort: 1, projectSlug: slug }),
    );
    const deleted = owner.delete(`/projects/${slug}`);
    for (const { status } of await Promise.all([...rotating, ...minting, ...reserving])) {
      expect([200, 201, 404]).toContain(status);
    }
    expect((await deleted).status).toBe(200);
    const remaining = await api.sql(
      `select 1 from tunnels where project_id = $1 and deleted_at is null
        union all select 1 from tokens where project_id = $1 and revoked_at is null`,
      [id],
    );
    expect(remaining).toEqual([]);
  });
});

describe("a token of a project", () => {
  test("is valid for a day when a person mints it, and opens tunnels of that project only", async () => {
    const { slug } = await createProject();
    const { body } = await mintIn(slug);
    expect(body).toMatchObject({ projectSlug: slug, expiresAt: body.issuedAt + 24 * 3600 });
    const inside = await api.connectAgent(body.wireBytes, { port: 1, subdomain: "web" });
    expect(inside.code).toBeUndefined();
    const names = (await owner.get<Tunnel[]>("/tunnels")).body.map(({ subdomain }) => subdomain);
    expect(names).toContain(`web-${slug}`);
    inside.socket?.close();
    for (const project of ["default", (await createProject()).slug]) {
      const outside = await api.connectAgent(body.wireBytes, { port: 1, project });
      expect(outside.code).toBe(CLOSE.forbidden);
    }
  });

  test("can be restricted to some of its names", async () => {
    const { slug } = await createProject();
    const allowed_subdomains = [`api-${slug}`, `*-eu-${slug}`, "pr-*"];
    const { body } = await mintIn(slug, { allowed_subdomains });
    expect(body.allowedSubdomains).toEqual([`api-${slug}`, `*-eu-${slug}`, `pr-*-${slug}`]);
    const readCloseCode = async (subdomain: string) => {
      const { socket, code } = await api.connectAgent(body.wireBytes, { port: 1, subdomain });
      socket?.close();
      return code;
    };
    for (const name of ["api", "x-eu", "pr-7"]) expect(await readCloseCode(name)).toBeUndefined();
    for (const name of ["web", "apis", "eu"])
      expect(await readCloseCode(name)).toBe(CLOSE.forbidden);
  });

  test("can be restricted to plain names, which get the project's suffix", async () => {
    const { slug } = await createProject();
    const { body } = await mintIn(slug, { allowed_subdomains: ["web", "*-eu", "staging*"] });
    expect(body.allowedSubdomains).toEqual([`web-${slug}`, `*-eu-${slug}`, `staging*-${slug}`]);
    const { socket, code } = await api.connectAgent(body.wireBytes, { port: 1, subdomain: "web" });
    expect(code).toBeUndefined();
    socket?.close();
    const { body: outside } = await mintIn("default", { allowed_subdomains: ["web"] });
    expect(outside.allowedSubdomains).toEqual(["web"]);
  });

  test.each(["-PROJECT", "n".repeat(63), "-x", "x-", "-"])(
    "cannot be restricted to %s, which no tunnel of the project can have",
    async (pattern) => {
      const { slug } = await createProject();
      const outside = pattern.replace("PROJECT", slug);
      expect(await mintIn(slug, { allowed_subdomains: [outside] })).toMatchObject({
        status: 400,
        body: { error: "invalid_request", fields: [{ path: "allowed_subdomains[0]" }] },
      });
    },
  );

  test("is minted by members, and not without a bearer token", async () => {
    const { slug } = await createProject();
    const viewer = await api.colleague(owner, "viewer");
    const post = (by: Pick<Person, "post">) => by.post(`/projects/${slug}/tokens`, { name: "x" });
    expect((await post(viewer)).status).toBe(403);
    expect((await post(await api.colleague(owner, "member"))).status).toBe(200);
    expect((await post(api.anonymous)).status).toBe(401);
    expect((await post(await api.owner())).status).toBe(404);
  });
});

test("changes of a project are in the audit log, but not a name that it already has", async () => {
  const { id, slug } = await createProject();
  const renamed = await owner.patch<Project>(`/projects/${slug}`, { name: "Other" });
  expect(await owner.patch<Project>(`/projects/${slug}`, { name: "Other" })).toMatchObject({
    status: 200,
    body: renamed.body,
  });
  await owner.delete(`/projects/${slug}`);
  const events = await api.sql<{ action: string }>(
    "select action from audit_events where resource_id = $1 order by created_at",
    [id],
  );
  const actions = events.map(({ action }) => action);
  expect(actions).toEqual(["project_created", "project_renamed", "project_deleted"]);
});

test("an agent with an unrestricted token names the project", async () => {
  const { slug } = await createProject();
  const { wireBytes } = await mintToken(owner);
  const agent = await api.connectAgent(wireBytes, { port: 1, subdomain: "any", project: slug });
  expect(agent.code).toBeUndefined();
  agent.socket?.close();
});
