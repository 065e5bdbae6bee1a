import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import type { AccountSummary, Me } from "../../../protocol/schemas/accounts/accounts.ts";
import type { Member } from "../../../protocol/schemas/organizations/organizations.ts";
import type { Token } from "../../../protocol/schemas/tokens.ts";
import {
  createCaller,
  getSocket,
  mintToken,
  newEmail,
  startApi,
  type Caller,
  type Person,
  type Role,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const buildPath = (of: Person, who: { userId: string }) =>
  `/orgs/${of.orgId}/members/${who.userId}`;
const setRole = (by: Caller, of: Person, who: { userId: string }, role: string) =>
  by.patch<Member>(buildPath(of, who), { role });
const remove = (by: Caller, of: Person, who: { userId: string }) => by.delete(buildPath(of, who));
const readRole = async (of: Person, who: { userId: string }) =>
  (await of.get<Member[]>(`/orgs/${of.orgId}/members`)).body.find(
    ({ user_id }) => user_id === who.userId,
  )?.role;
const readActions = async (who: { userId: string }) =>
  (
    await api.sql<{ action: string }>(
      "select action from audit_events where resource_id = $1 and action like 'member_%' order by created_at",
      [who.userId],
    )
  ).map(({ action }) => action);

/** Creates a person with an own organization who is also a member of the one of `of`, and acts for that. */
async function createGuest(of: Person, role: Role): Promise<Person & { homeOrgId: string }> {
  const person = await api.owner();
  await api.sql("insert into memberships (user_id, org_id, role) values ($1, $2, $3)", [
    person.userId,
    of.orgId,
    role,
  ]);
  const { body } = await person.post<AccountSummary>(`/orgs/${of.orgId}/switch`);
  const caller = createCaller(api.server, { authorization: `Bearer ${body.access_token}` });
  return { ...person, ...caller, orgId: of.orgId, homeOrgId: person.orgId };
}

describe("the list", () => {
  test("is visible to every member, newest member first, in pages", async () => {
    const of = await api.owner();
    const viewer = await createGuest(of, "viewer");
    const all = (await viewer.get<Member[]>(`/orgs/${of.orgId}/members`)).body;
    expect(all).toEqual([
      {
        user_id: viewer.userId,
        email: viewer.email,
        role: "viewer",
        joined_at: expect.any(String),
      },
      { user_id: of.userId, email: of.email, role: "owner", joined_at: expect.any(String) },
    ]);
    const path = `/orgs/${of.orgId}/members?limit=1`;
    expect((await of.get(path)).body).toEqual([all[0]]);
    expect((await of.get(`${path}&after=${viewer.userId}`)).body).toEqual([all[1]]);
    expect((await of.get(`${path}&after=${owner.userId}`)).status).toBe(400);
  });
});

describe("changing a role", () => {
  test("takes effect with the next request, with the same access token", async () => {
    const member = await api.colleague(owner, "member");
    const tunnel = () => member.post("/tunnels", { localPort: 1 });
    expect((await tunnel()).status).toBe(201);
    expect(await setRole(owner, owner, member, "viewer")).toMatchObject({
      status: 200,
      body: { user_id: member.userId, role: "viewer" },
    });
    expect((await tunnel()).status).toBe(403);
    await setRole(owner, owner, member, "admin");
    expect((await tunnel()).status).toBe(201);
    expect(await readActions(member)).toEqual(["member_role_changed", "member_role_changed"]);
  });

  test("to the same role is no event", async () => {
    const member = await api.colleague(owner, "member");
    expect((await setRole(owner, owner, member, "member")).status).toBe(200);
    expect(await readActions(member)).toEqual([]);
  });

  test("is refused to members and viewers", async () => {
    for (const role of ["member", "viewer"] as const) {
      const person = await api.colleague(owner, role);
      expect((await setRole(person, owner, person, "admin")).status).toBe(403);
      expect((await setRole(person, owner, owner, "viewer")).status).toBe(403);
    }
  });

  test("is allowed to admins, except from and to owner", async () => {
    const admin = await api.colleague(owner, "admin");
    const other = await api.colleague(owner, "admin");
    const second = await api.colleague(owner, "owner");
    expect((await setRole(admin, owner, other, "member")).status).toBe(200);
    for (const [who, role] of [
      [other, "owner"],
      [admin, "owner"],
      [second, "admin"],
      [second, "owner"],
    ] as const) {
      expect(await setRole(admin, owner, who, role)).toMatchObject({
        status: 403,
        body: { error: "forbidden" },
      });
    }
    expect((await remove(admin, owner, second)).status).toBe(403);
    expect((await setRole(owner, owner, second, "admin")).status).toBe(200);
    expect((await setRole(owner, owner, other, "owner")).status).toBe(200);
    expect((await setRole(admin, owner, admin, "viewer")).status).toBe(200);
    expect((await setRole(admin, owner, admin, "admin")).status).toBe(403);
  });

  test("answers 404 for a user who is not a member, and 400 for an unknown role", async () => {
    const otherOwner = await api.owner();
    for (const userId of [otherOwner.userId, crypto.randomUUID(), "x"]) {
      expect((await setRole(owner, owner, { userId }, "member")).status).toBe(404);
      expect((await remove(owner, owner, { userId })).status).toBe(404);
    }
    const member = await api.colleague(owner, "member");
    for (const role of ["superadmin", "Owner", "", 3, null]) {
      const reply = await setRole(owner, owner, member, role as string);
      expect(reply).toMatchObject({ status: 400, body: { fields: [{ path: "role" }] } });
    }
  });

  test("uses only the ids of the path, not those of body and query", async () => {
    const other = await api.owner();
    const [member, victim] = [
      await api.colleague(owner, "member"),
      await createGuest(other, "member"),
    ];
    const ids = { id: other.orgId, org_id: other.orgId, user_id: victim.userId };
    const query = new URLSearchParams(ids).toString();
    const body = { ...ids, role: "admin" };
    expect((await owner.patch(`${buildPath(owner, member)}?${query}`, body)).status).toBe(200);
    expect(await readRole(owner, member)).toBe("admin");
    expect(await readRole(other, victim)).toBe("member");
    expect((await owner.patch(`${buildPath(other, victim)}?id=${owner.orgId}`, body)).status).toBe(
      404,
    );
  });
});

describe("the last owner", () => {
  test("cannot leave or be demoted until there is another owner", async () => {
    const of = await api.owner();
    const refused = { status: 409, body: { error: "conflict" } };
    expect(await remove(of, of, of)).toMatchObject(refused);
    expect(await setRole(of, of, of, "admin")).toMatchObject(refused);
    const successor = await createGuest(of, "admin");
    await setRole(of, of, successor, "owner");
    expect((await remove(of, of, of)).status).toBe(200);
    expect(await remove(successor, of, successor)).toMatchObject(refused);
  });

  test.each(["demote each other", "remove each other", "both leave"])(
    "remains when two owners %s at the same time",
    async (what) => {
      const of = await api.owner();
      const second = await createGuest(of, "owner");
      const attempt = (by: Person, at: number) => {
        const other = by === of ? second : of;
        if (what === "both leave") return remove(by, of, by);
        return what === "remove each other"
          ? remove(by, of, other)
          : setRole(by, of, other, at % 4 < 2 ? "admin" : "viewer");
      };
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, at) => attempt(at % 2 === 0 ? of : second, at)),
      );
      const owners = await api.sql(
        "select user_id from memberships where org_id = $1 and role = 'owner'",
        [of.orgId],
      );
      expect(owners).toHaveLength(1);
      expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(1);
      expect(replies.filter(({ status }) => status >= 500)).toEqual([]);
    },
  );
});

describe("removing", () => {
  test("ends the access of the member's sessions at once, to this organization only", async () => {
    const member = await createGuest(owner, "member");
    expect((await member.get("/tunnels")).status).toBe(200);
    expect((await remove(owner, owner, member)).status).toBe(200);
    expect((await member.get("/tunnels")).status).toBe(401);
    expect((await member.get(`/orgs/${owner.orgId}/members`)).status).toBe(404);
    expect((await member.get(`/orgs/${member.homeOrgId}`)).status).toBe(200);
    expect(await readActions(member)).toEqual(["member_removed"]);
    const { body: events } = await owner.get<AuditEvent[]>("/events?action=member_removed");
    expect(events[0]).toMatchObject({ metadata: { email: member.email, role: "member" } });

    const renewed = await createCaller(api.server, { cookie: member.cookie }).post<{
      access_token: string;
    }>("/auth/refresh");
    const authorization = `Bearer ${renewed.body.access_token}`;
    const { body } = await createCaller(api.server, { authorization }).get<Me>("/auth/me");
    expect(body.active_org.id).toBe(member.homeOrgId);
  });

  test("revokes the tokens that they minted there, and disconnects their agents", async () => {
    const member = await createGuest(owner, "member");
    const homeSession = await api.logIn(member.email, member.password);
    const { body } = await homeSession.post<AccountSummary>(`/orgs/${member.homeOrgId}/switch`);
    const home = createCaller(api.server, { authorization: `Bearer ${body.access_token}` });
    const [token, homeToken, ownerToken] = [
      await mintToken(member),
      await mintToken({ ...member, ...home }),
      await mintToken(owner),
    ];
    const agent = await api.connectAgent(token.wireBytes, { port: 1, subdomain: "leaver" });
    const closed = once(getSocket(agent), "close") as Promise<[number]>;
    await remove(owner, owner, member);

    expect((await closed)[0]).toBe(CLOSE.unauthorized);
    expect((await api.connectAgent(token.wireBytes, { port: 1 })).code).toBe(CLOSE.unauthorized);
    for (const { wireBytes } of [homeToken, ownerToken]) {
      const attempt = await api.connectAgent(wireBytes, { port: 1 });
      expect(attempt.code).toBeUndefined();
      attempt.socket?.close();
    }
    const events = await api.sql(
      "select 1 from audit_events where action = 'token_revoked' and resource_id = $1",
      [token.id],
    );
    expect(events).toHaveLength(1);
  });

  test("voids device requests that they approved and whose token was not collected", async () => {
    const member = await createGuest(owner, "member");
    const { body } = await api.anonymous.post<{ device_code: string }>("/auth/cli/start", {});
    expect((await member.post("/auth/cli/authorize", body)).status).toBe(200);
    await remove(owner, owner, member);
    expect((await api.anonymous.post("/auth/cli/poll", body)).status).toBe(410);
  });

  test("leaves no token that was minted at the same time", async () => {
    const member = await createGuest(owner, "member");
    const minting = Array.from({ length: 24 }, () => member.post("/tokens", { name: "late" }));
    await Promise.all([remove(owner, owner, member), ...minting]);
    const remaining = await api.sql(
      "select id from tokens where org_id = $1 and created_by = $2 and revoked_at is null",
      [owner.orgId, member.userId],
    );
    expect(remaining).toEqual([]);
  });

  test("fails no concurrent renewal: each is for an organization that the user still belongs to", async () => {
    const member = await api.colleague(owner, "member");
    const browser = createCaller(api.server, { cookie: member.cookie });
    const renew = () => browser.post<{ access_token: string }>("/auth/refresh");
    const [, ...renewals] = await Promise.all([
      remove(owner, owner, member),
      ...Array.from({ length: 20 }, renew),
    ]);
    expect(renewals.map(({ status }) => status)).toEqual(Array(20).fill(200));
    const { body } = await renew();
    const authorization = `Bearer ${body.access_token}`;
    const organizations = await createCaller(api.server, { authorization }).get<unknown[]>("/orgs");
    expect(organizations.body).toMatchObject([{ role: "owner" }]);
  });

  test("allows every member to leave, and no member to remove another", async () => {
    for (const role of ["viewer", "member", "admin"] as const) {
      const person = await createGuest(owner, role);
      const other = await createGuest(owner, "viewer");
      const expected = role === "admin" ? 200 : 403;
      expect((await remove(person, owner, other)).status).toBe(expected);
      expect((await remove(person, owner, person)).status).toBe(200);
      expect((await remove(person, owner, person)).status).toBe(404);
    }
  });

  test("by twenty concurrent requests happens once", async () => {
    const member = await createGuest(owner, "member");
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => remove(owner, owner, member)),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 404)).toHaveLength(19);
    expect(await readActions(member)).toEqual(["member_removed"]);
  });
});

describe("the loss of a permission revokes a member's", () => {
  const revokedTokens = async (by: Person) =>
    (await owner.get<Token[]>("/tokens")).body.filter(
      ({ name, revoked }) => revoked && name === by.userId,
    ).length;

  test("tokens, when they become a viewer", async () => {
    const admin = await createGuest(owner, "admin");
    const { wireBytes } = await mintToken(admin, { name: admin.userId });
    const agent = await api.connectAgent(wireBytes, { port: 1 });
    const closed = once(getSocket(agent), "close") as Promise<[number]>;
    await setRole(owner, owner, admin, "member");
    expect(await revokedTokens(admin)).toBe(0);
    await setRole(owner, owner, admin, "viewer");
    expect(await revokedTokens(admin)).toBe(1);
    expect((await closed)[0]).toBe(CLOSE.unauthorized);
  });

  test("invitations, when they lose the permission to invite to that role", async () => {
    const second = await createGuest(owner, "owner");
    const path = `/orgs/${owner.orgId}/invitations`;
    const invite = (role: Role) => second.post(path, { email: newEmail(), role });
    for (const role of ["owner", "viewer"] as const) expect((await invite(role)).status).toBe(201);
    const listOpen = async () =>
      (await owner.get<{ role: Role; invited_by: string }[]>(path)).body
        .filter(({ invited_by }) => invited_by === second.userId)
        .map(({ role }) => role);
    expect(await listOpen()).toEqual(["viewer", "owner"]);
    await setRole(owner, owner, second, "admin");
    expect(await listOpen()).toEqual(["viewer"]);
    await remove(owner, owner, second);
    expect(await listOpen()).toEqual([]);
  });
});
