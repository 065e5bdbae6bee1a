import PostalMime, { type Email } from "postal-mime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type {
  Invitation,
  InvitationOffer,
  Organization,
} from "../../../protocol/schemas/organizations/organizations.ts";
import {
  createCaller,
  newEmail,
  startApi,
  waitUntil,
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

const buildPath = (of: Person) => `/orgs/${of.orgId}/invitations`;
const invite = (by: Caller, of: Person, email: string, role: Role = "member") =>
  by.post<Invitation>(buildPath(of), { email, role });
const accept = (by: Caller, token: string) =>
  by.post<Organization>("/invitations/accept", { token });
const lookUp = (by: Caller, token: string) =>
  by.post<InvitationOffer>("/invitations/lookup", { token });
const list = async (of: Person) => (await of.get<Invitation[]>(buildPath(of))).body;
const readRole = async (of: Person, who: Person) =>
  (
    await api.sql<{ role: Role }>(
      "select role from memberships where org_id = $1 and user_id = $2",
      [of.orgId, who.userId],
    )
  )[0]?.role;
const readActions = async (id: string) =>
  (
    await api.sql<{ action: string }>(
      "select action from audit_events where resource_id = $1 order by created_at",
      [id],
    )
  ).map(({ action }) => action);

/** Waits until at least so many invitations were mailed to an address. */
async function waitForMails(email: string, atLeast = 1): Promise<Email[]> {
  return waitUntil(async () => {
    const mails = await Promise.all(
      (await api.readMailsTo(email)).map((mail) => PostalMime.parse(mail)),
    );
    const invitations = mails.filter(({ subject }) => subject?.includes(" invites you to "));
    return invitations.length >= atLeast && invitations;
  });
}
const parseToken = (mail: Email) => /\/invitation#token=([\w-]{43})$/m.exec(mail.text ?? "")![1]!;
const readMailedToken = async (email: string) => parseToken((await waitForMails(email)).at(-1)!);

describe("inviting", () => {
  test("sends a link with the token by email, and stores only its hash", async () => {
    const email = newEmail();
    const { status, body } = await invite(owner, owner, email.toUpperCase(), "admin");
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      email,
      role: "admin",
      invited_by: owner.userId,
      created_at: expect.any(String),
      expires_at: expect.any(String),
    });
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(7 * 24 * 3600_000);
    expect(await list(owner)).toContainEqual(body);

    const [mail] = await waitForMails(email);
    const token = parseToken(mail!);
    const link = `http://localhost:${api.server.port}/invitation#token=${token}`;
    expect(mail!.text).toContain(link);
    expect(mail!.html).toContain(`href="${link}"`);
    const rows = JSON.stringify(await api.sql("select * from invitations"));
    expect(rows).not.toContain(token);
    expect(api.server.output).not.toContain(token);
    expect(await readActions(body.id)).toEqual(["invitation_created"]);
  });

  test("links to the service itself, whatever host the request names", async () => {
    const email = newEmail();
    await owner.send("POST", buildPath(owner), {
      headers: {
        "content-type": "application/json",
        "x-forwarded-host": "evil.test",
        forwarded: "host=evil.test",
        origin: "https://evil.test",
      },
      body: JSON.stringify({ email, role: "viewer" }),
    });
    const [mail] = await waitForMails(email);
    expect(`${mail!.text}${mail!.html}`).not.toContain("evil.test");
  });

  test("escapes names in the email, and fits them in one line of the subject", async () => {
    const of = await api.owner();
    const name = '<img src=x onerror=alert(1)> & "friends"';
    await of.patch(`/orgs/${of.orgId}`, { name });
    const email = newEmail();
    await invite(of, of, email);
    const [mail] = await waitForMails(email);
    expect(mail!.subject).toBe(`${of.email} invites you to ${name} on Underpass`);
    expect(mail!.html).not.toContain("<img");
    expect(mail!.html).toContain("&lt;img src=x");
    expect(mail!.text).toContain(name);
  });

  test("again replaces the earlier invitation, whose token is void", async () => {
    const person = await api.owner();
    const first = await invite(owner, owner, person.email, "viewer");
    const second = await invite(owner, owner, person.email, "admin");
    const tokens = (await waitForMails(person.email, 2)).map(parseToken);
    expect((await list(owner)).filter(({ email }) => email === person.email)).toEqual([
      second.body,
    ]);
    const replies = [];
    for (const token of tokens) replies.push(await accept(person, token));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 400]);
    expect(await readRole(owner, person)).toBe("admin");
    expect(await readActions(first.body.id)).toEqual(["invitation_created"]);
  });

  test("leaves one open invitation of twenty concurrent ones for one address", async () => {
    const email = newEmail();
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => invite(owner, owner, email)),
    );
    expect(replies.every(({ status }) => status === 201)).toBe(true);
    expect((await list(owner)).filter((invitation) => invitation.email === email)).toHaveLength(1);
  });

  test("gives the same response with and without an account", async () => {
    const registered = await api.owner();
    const [one, other] = [
      await invite(owner, owner, registered.email),
      await invite(owner, owner, newEmail()),
    ];
    expect(one.status).toBe(other.status);
    expect(Object.keys(one.body)).toEqual(Object.keys(other.body));
  });

  test("refuses an address of a member without sending an email", async () => {
    const member = await api.colleague(owner, "viewer");
    expect(await invite(owner, owner, member.email)).toMatchObject({
      status: 409,
      body: { error: "duplicate_name" },
    });
    expect((await api.readMailsTo(member.email)).join()).not.toContain("invites");
  });

  test("requires an admin, and an owner to invite an owner", async () => {
    const admin = await api.colleague(owner, "admin");
    for (const role of ["viewer", "member"] as const) {
      const person = await api.colleague(owner, role);
      expect((await invite(person, owner, newEmail())).status).toBe(403);
      expect((await person.get(buildPath(owner))).status).toBe(200);
    }
    expect((await invite(admin, owner, newEmail(), "admin")).status).toBe(201);
    expect((await invite(admin, owner, newEmail(), "owner")).status).toBe(403);
    expect((await invite(owner, owner, newEmail(), "owner")).status).toBe(201);
  });

  test.each([
    ["no address", { role: "member" }, "email"],
    ["an invalid address", { email: "no-at-sign", role: "member" }, "email"],
    ["two addresses", { email: "a@example.com,b@example.com", role: "member" }, "email"],
    [
      "an address with a line break",
      { email: "a@example.com\r\nBcc: b@c.de", role: "member" },
      "email",
    ],
    [
      "an address of 255 characters",
      { email: `${"a".repeat(243)}@example.com`, role: "member" },
      "email",
    ],
    ["no role", { email: "a@example.com" }, "role"],
    ["an unknown role", { email: "a@example.com", role: "root" }, "role"],
  ])("refuses %s", async (_, body, field) => {
    expect(await owner.post(buildPath(owner), body)).toMatchObject({
      status: 400,
      body: { error: "invalid_request", fields: [{ path: field }] },
    });
  });

  test("is limited to a hundred open ones and two hundred a day, also with concurrent requests", async () => {
    const of = await api.owner();
    await api.sql(
      `insert into invitations (org_id, email, role, token_hash, expires_at)
       select $1, n || '@example.com', 'viewer', gen_random_uuid()::text, now() + interval '1 day' from generate_series(1, 90) n`,
      [of.orgId],
    );
    const replies = await Promise.all(Array.from({ length: 20 }, () => invite(of, of, newEmail())));
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(10);
    expect(replies.find(({ status }) => status === 409)?.body).toMatchObject({ error: "conflict" });
    const [{ id } = { id: "" }] = await list(of);
    await of.delete(`${buildPath(of)}/${id}`);
    expect((await invite(of, of, newEmail())).status).toBe(201);

    await api.sql("update invitations set revoked_at = now() where org_id = $1", [of.orgId]);
    await api.sql(
      `insert into invitations (org_id, email, role, token_hash, expires_at, revoked_at)
       select $1, n || '@example.com', 'viewer', gen_random_uuid()::text, now(), now() from generate_series(91, 189) n`,
      [of.orgId],
    );
    expect(await invite(of, of, newEmail())).toMatchObject({
      status: 429,
      body: { error: "rate_limited", retry_after_seconds: 3600 },
    });
  });
});

describe("accepting", () => {
  test("makes the person with the invited address a member, in that role, at once", async () => {
    const person = await api.owner();
    const { body: invitation } = await invite(owner, owner, person.email, "admin");
    expect((await person.get(`/orgs/${owner.orgId}`)).status).toBe(404);
    const token = await readMailedToken(person.email);
    const { body: organization } = await owner.get<Organization>(`/orgs/${owner.orgId}`);
    expect(await lookUp(person, ` ${token}\n`)).toMatchObject({
      status: 200,
      body: {
        organization_name: organization.name,
        role: "admin",
        inviter_email: owner.email,
        expires_at: invitation.expires_at,
      },
    });
    const { status, body } = await accept(person, token);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: owner.orgId, role: "admin", approval_status: "approved" });
    expect((await person.get<Organization>(`/orgs/${owner.orgId}`)).body).toEqual(body);
    expect(await readActions(invitation.id)).toEqual(["invitation_created", "invitation_accepted"]);
    expect((await list(owner)).map(({ id }) => id)).not.toContain(invitation.id);
  });

  test("works for an account that is created afterwards", async () => {
    const email = newEmail();
    await invite(owner, owner, email);
    const token = await readMailedToken(email);
    await api.anonymous.post("/auth/signup", { email, password: owner.password });
    await api.anonymous.post("/auth/verify-email-otp", {
      email,
      code: await api.getMailedCode(email),
    });
    const person = await api.logIn(email, owner.password);
    expect((await accept(person, token)).status).toBe(200);
  });

  test("succeeds once of twenty concurrent attempts, and creates one membership", async () => {
    const person = await api.owner();
    const { body: invitation } = await invite(owner, owner, person.email);
    const token = await readMailedToken(person.email);
    const replies = await Promise.all(Array.from({ length: 20 }, () => accept(person, token)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    const refused = replies.filter(({ status }) => status === 400);
    expect(refused).toHaveLength(19);
    expect(refused[0]?.body).toMatchObject({ error: "invalid_token" });
    expect(await readRole(owner, person)).toBe("member");
    expect(await readActions(invitation.id)).toHaveLength(2);
  });

  test("requires the account with the invited address, and a failed attempt does not use the token up", async () => {
    const [person, otherPerson] = [await api.owner(), await api.owner()];
    await invite(owner, owner, person.email);
    const token = await readMailedToken(person.email);
    for (const send of [lookUp, accept]) {
      expect(await send(otherPerson, token)).toMatchObject({
        status: 403,
        body: { error: "forbidden" },
      });
      expect((await send(api.anonymous, token)).status).toBe(401);
    }
    expect(await readRole(owner, otherPerson)).toBeUndefined();
    expect((await accept(person, token)).status).toBe(200);
  });

  test("leaves no member in an organization that is deleted at the same time", async () => {
    const [of, person] = [await api.owner(), await api.owner()];
    await invite(of, of, person.email);
    const token = await readMailedToken(person.email);
    const [deleted, ...replies] = await Promise.all([
      of.delete(`/orgs/${of.orgId}`),
      ...Array.from({ length: 20 }, () => accept(person, token)),
    ]);
    expect(deleted.status).toBe(200);
    expect(replies.every(({ status }) => status === 200 || status === 400)).toBe(true);
    expect(await readRole(of, person)).toBeUndefined();
  });

  test("does not change the role of a member", async () => {
    const person = await api.owner();
    await invite(owner, owner, person.email, "owner");
    await api.sql("insert into memberships (user_id, org_id, role) values ($1, $2, 'viewer')", [
      person.userId,
      owner.orgId,
    ]);
    const reply = await accept(person, await readMailedToken(person.email));
    expect(reply).toMatchObject({ status: 200, body: { role: "viewer" } });
    expect(await readRole(owner, person)).toBe("viewer");
  });

  test.each<[string, (of: Person, invitation: Invitation) => Promise<unknown>]>([
    [
      "expired",
      (_, { id }) =>
        api.sql("update invitations set expires_at = now() - interval '1 s' where id = $1", [id]),
    ],
    ["revoked", (of, { id }) => of.delete(`${buildPath(of)}/${id}`)],
    ["of an organization that was deleted", (of) => of.delete(`/orgs/${of.orgId}`)],
    [
      "of a person who left",
      async (of) => {
        await api.sql("update memberships set role = 'admin' where user_id = $1", [of.userId]);
        await api.colleague(of, "owner");
        await of.delete(`/orgs/${of.orgId}/members/${of.userId}`);
      },
    ],
  ])("refuses an invitation that is %s", async (_, end) => {
    const [of, person] = [await api.owner(), await api.owner()];
    const { body } = await invite(of, of, person.email);
    const token = await readMailedToken(person.email);
    await end(of, body);
    for (const send of [lookUp, accept]) {
      expect(await send(person, token)).toMatchObject({
        status: 400,
        body: { error: "invalid_token" },
      });
    }
    expect(await readRole(of, person)).toBeUndefined();
  });

  test("refuses other credentials of the service", async () => {
    const cookie = owner.cookie.slice("qnt_refresh=".length);
    for (const token of ["", "x", owner.accessToken, cookie, "' or true --", "x".repeat(100_000)]) {
      expect((await accept(owner, token)).body).toMatchObject({ error: "invalid_token" });
    }
    await invite(owner, owner, newEmail());
    const [row] = await api.sql<{ hash: string }>(
      "select token_hash hash from invitations limit 1",
    );
    expect((await accept(owner, row!.hash)).status).toBe(400);
  });

  test("does not make the token a bearer token", async () => {
    const email = newEmail();
    await invite(owner, owner, email);
    const authorization = `Bearer ${await readMailedToken(email)}`;
    expect((await createCaller(api.server, { authorization }).get("/orgs")).status).toBe(401);
  });
});

describe("revoking", () => {
  test("requires an admin of the organization, and happens once", async () => {
    const other = await api.owner();
    const member = await api.colleague(owner, "member");
    const { body } = await invite(owner, owner, newEmail());
    const path = `${buildPath(owner)}/${body.id}`;
    expect((await member.delete(path)).status).toBe(403);
    expect((await other.delete(path)).status).toBe(404);
    expect((await other.delete(`${buildPath(other)}/${body.id}`)).status).toBe(404);
    const replies = await Promise.all(Array.from({ length: 20 }, () => owner.delete(path)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 404)).toHaveLength(19);
    expect(await readActions(body.id)).toEqual(["invitation_created", "invitation_revoked"]);
  });
});

test("an organization cannot invite before it is approved", async () => {
  await using strict = await startApi({ env: { REQUIRE_ORG_APPROVAL: "true" } });
  const person = await strict.owner();
  const { body } = await person.post<Organization>("/orgs", { name: "Another" });
  expect(body.approval_status).toBe("pending");
  for (const orgId of [body.id, person.orgId]) {
    const email = newEmail();
    const reply = await person.post(`/orgs/${orgId}/invitations`, { email, role: "member" });
    expect(reply).toMatchObject({ status: 403, body: { error: "forbidden" } });
    expect(await strict.readMailsTo(email)).toEqual([]);
  }
  await strict.sql("update organizations set approval_status = 'approved'");
  const email = newEmail();
  const path = `/orgs/${body.id}/invitations`;
  expect((await person.post(path, { email, role: "member" })).status).toBe(201);
});
