/** What one organization, one user and one mailbox can be given: the rows are inserted up to just below each bound. */
import PostalMime from "postal-mime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { Organization } from "../../../protocol/schemas/organizations/organizations.ts";
import type { Project } from "../../../protocol/schemas/organizations/projects.ts";
import { CHANGES_OF_A_KIND_DAILY_MAX, ORGANIZATION_MAXIMA } from "../../../workers/store/bounds.ts";
import {
  mintToken,
  newEmail,
  startApi,
  waitUntil,
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

const conflict = (maximum: string) => ({
  status: 409,
  body: { error: "conflict", message: `An organization can have at most ${maximum} at a time.` },
});
const repeat = <Result>(times: number, run: (at: number) => Promise<Result>) =>
  Promise.all(Array.from({ length: times }, (_, at) => run(at)));
const sortStatuses = (replies: { status: number }[]) => replies.map(({ status }) => status).sort();

async function insertTunnels(person: Person, count: number): Promise<void> {
  await api.sql(
    `insert into tunnels (org_id, project_id, name, subdomain, protocol, local_port)
     select org_id, id, 'bound', 'bound-' || left(org_id::text, 8) || '-' || n, 'http', 1
     from projects, generate_series(1, $2) n where org_id = $1 and is_default`,
    [person.orgId, count],
  );
}

async function insertTokens(person: Person, kind: "agent" | "master", count: number) {
  await api.sql(
    `insert into tokens (org_id, nonce, kind, name, bandwidth_limit_mbps, tunnel_quota, issued_at, expires_at)
     select $1, replace(gen_random_uuid()::text, '-', ''), $2, 'one of many', 1, 1, now(), now() + interval '1 day'
     from generate_series(1, $3) n`,
    [person.orgId, kind, count],
  );
}

async function insertMembers(orgId: string, count: number): Promise<void> {
  await api.sql(
    `with added as (insert into users (email, email_verified_at)
       select gen_random_uuid() || '@example.com', now() from generate_series(1, $2) returning id)
     insert into memberships (org_id, user_id, role) select $1, id, 'viewer' from added`,
    [orgId, count],
  );
}

describe("an organization has a bounded number of", () => {
  test("tunnels, whether its members or its agents create them, and a tunnel that ends makes room", async () => {
    const person = await api.owner();
    const token = await mintToken(person, { tunnelQuota: 100 });
    await insertTunnels(person, ORGANIZATION_MAXIMA.tunnels - 2);
    const replies = await repeat(4, () =>
      person.post<{ id: string }>("/tunnels", { localPort: 1 }),
    );
    expect(sortStatuses(replies)).toEqual([201, 201, 409, 409]);
    expect(replies.find(({ status }) => status === 409)).toMatchObject(conflict("2000 tunnels"));

    const agent = { port: 1, subdomain: "bound-agent" };
    const { code, reason } = await api.connectAgent(token.wireBytes, agent);
    expect([code, reason]).toEqual([
      CLOSE.quota_exceeded,
      "quota_exceeded: An organization can have at most 2000 tunnels at a time. [tunnel_limit]",
    ]);
    const { body } = replies.find(({ status }) => status === 201)!;
    await person.delete(`/tunnels/${body.id}`);
    const { socket } = await api.connectAgent(token.wireBytes, agent);
    expect(socket).toBeDefined();
    socket?.close();
  });

  test("capability tokens, and a revoked one makes room", async () => {
    const person = await api.owner();
    await insertTokens(person, "agent", ORGANIZATION_MAXIMA.capability_tokens - 2);
    const replies = await repeat(4, () =>
      person.post<{ nonce: string }>("/tokens", { name: "more" }),
    );
    expect(sortStatuses(replies)).toEqual([200, 200, 409, 409]);
    expect(await person.post("/projects/default/tokens", { name: "more" })).toMatchObject(
      conflict("10000 capability tokens"),
    );
    const { nonce } = replies.find(({ status }) => status === 200)!.body;
    expect((await person.post(`/tokens/${nonce}/rotate`)).status).toBe(200);
    await api.sql(
      "update tokens set revoked_at = now() where org_id = $1 and name = 'one of many'",
      [person.orgId],
    );
    expect((await person.post("/tokens", { name: "more" })).status).toBe(200);
  });

  test("master keys", async () => {
    const person = await api.owner();
    await insertTokens(person, "master", ORGANIZATION_MAXIMA.master_keys - 1);
    const replies = await repeat(3, () => person.post("/tokens/master", { name: "more" }));
    expect(sortStatuses(replies)).toEqual([200, 409, 409]);
    expect(replies.find(({ status }) => status === 409)).toMatchObject(conflict("100 master keys"));
  });

  test("projects", async () => {
    const person = await api.owner();
    await api.sql(
      "insert into projects (org_id, slug, name) select $1, 'many-' || n, 'many' from generate_series(1, $2) n",
      [person.orgId, ORGANIZATION_MAXIMA.projects - 2],
    );
    const replies = await repeat(3, (at) =>
      person.post<Project>("/projects", { slug: `more-${at}`, name: "more" }),
    );
    expect(sortStatuses(replies)).toEqual([201, 409, 409]);
    expect(replies.find(({ status }) => status === 409)).toMatchObject(conflict("1000 projects"));
    await person.delete("/projects/many-1");
    expect((await person.post("/projects", { slug: "last", name: "last" })).status).toBe(201);
  });

  test("members, and those who are invited beyond it can accept when there is room", async () => {
    const person = await api.owner();
    await insertMembers(person.orgId, ORGANIZATION_MAXIMA.members - 1);
    const [guest, token] = await inviteNew(person, "viewer");
    const accept = () => guest.post("/invitations/accept", { token });
    expect(await accept()).toMatchObject(conflict("1000 members"));
    await api.sql(
      `delete from memberships where org_id = $1 and user_id = (select user_id from memberships
         where org_id = $1 and role = 'viewer' limit 1)`,
      [person.orgId],
    );
    expect((await accept()).status).toBe(200);
  });
});

/** @returns a person with an account, and the token of an invitation that only they can accept. */
async function inviteNew(by: Person, role: string): Promise<[Person, string]> {
  const guest = await api.owner();
  await by.post(`/orgs/${by.orgId}/invitations`, { email: guest.email, role });
  return [guest, await readInvitation(guest.email)];
}

/** @returns the token in the mail. */
function readInvitation(email: string): Promise<string> {
  return waitUntil(async () => {
    const mails = await Promise.all(
      (await api.readMailsTo(email)).map((mail) => PostalMime.parse(mail)),
    );
    const texts = mails.map(({ text }) => /\/invitation#token=([\w-]{43})/.exec(text ?? "")?.[1]);
    return texts.find((token) => token !== undefined);
  });
}

describe("in 24 hours", () => {
  const fill = (person: Person, action: string, hoursAgo = 0) =>
    api.sql(
      `insert into audit_events (org_id, user_id, action, resource_type, resource_id, created_at)
       select $1, $2, $3, 'tunnel', n::text, now() - $4 * interval '1 hour' from generate_series(1, $5) n`,
      [person.orgId, person.userId, action, hoursAgo, CHANGES_OF_A_KIND_DAILY_MAX],
    );
  const refusal = (action: string) => ({
    status: 429,
    body: {
      error: "rate_limited",
      message: `An organization can make at most 10000 changes of the kind ${action} in 24 hours.`,
      retry_after_seconds: 3600,
    },
  });

  test("an organization makes a bounded number of changes of a kind, and what it has can still be ended", async () => {
    const [person, other] = [await api.owner(), await api.owner()];
    const { body: tunnel } = await person.post<{ id: string }>("/tunnels", { localPort: 1 });
    const token = await mintToken(person);
    await fill(person, "tunnel_created");
    await fill(person, "tunnel_deleted");
    await fill(person, "token_revoked");
    expect(await person.post("/tunnels", { localPort: 1 })).toMatchObject(
      refusal("tunnel_created"),
    );
    expect(await api.connectAgent(token.wireBytes, { port: 1 })).toMatchObject({
      code: CLOSE.quota_exceeded,
      reason: expect.stringContaining("10000 changes of the kind tunnel_created in 24 hours"),
    });
    expect((await other.post("/tunnels", { localPort: 1 })).status).toBe(201);
    expect((await person.post("/projects", { slug: "other-kind", name: "x" })).status).toBe(201);
    expect((await person.delete(`/tunnels/${tunnel.id}`)).status).toBe(200);
    expect((await person.delete(`/tokens/${token.nonce}`)).status).toBe(200);
  });

  test("a refused change has changed nothing, and earlier days do not count", async () => {
    const person = await api.owner();
    await fill(person, "project_renamed", 25);
    const rename = (name: string) => person.patch<Project>("/projects/default", { name });
    expect((await rename("yesterday's renames")).status).toBe(200);
    await fill(person, "project_renamed");
    expect(await rename("refused")).toMatchObject(refusal("project_renamed"));
    expect((await person.get<Project>("/projects/default")).body.name).toBe("yesterday's renames");
  });

  test("a mailbox gets twenty invitations, from however many organizations and under whatever tag", async () => {
    const inviters = await repeat(6, () => api.owner());
    const [name, domain] = newEmail().split("@") as [string, string];
    await api.sql(
      `insert into invitations (org_id, email, role, token_hash, expires_at, revoked_at)
       select $1, $2, 'viewer', gen_random_uuid()::text, now(), now() from generate_series(1, 16)`,
      [owner.orgId, `${name}@${domain}`],
    );
    const replies = await Promise.all(
      inviters.map((by, at) =>
        by.post(`/orgs/${by.orgId}/invitations`, {
          email: at % 2 === 0 ? `${name}@${domain}` : `${name}+${at}@${domain}`,
          role: "viewer",
        }),
      ),
    );
    expect(sortStatuses(replies)).toEqual([201, 201, 201, 201, 429, 429]);
    expect(replies.find(({ status }) => status === 429)).toMatchObject({
      body: {
        error: "rate_limited",
        message:
          "Too many invitations were sent to this address in the last 24 hours. Try again later.",
      },
    });
    const [by] = inviters;
    const another = { email: newEmail(), role: "viewer" };
    expect((await by!.post(`/orgs/${by!.orgId}/invitations`, another)).status).toBe(201);
  });

  test("a user deletes twenty organizations, each of which leaves a row", async () => {
    const person = await api.owner();
    const createAndDelete = async () => {
      const { body } = await person.post<Organization>("/orgs", { name: "Short" });
      return person.delete(`/orgs/${body.id}`);
    };
    await api.sql(
      `insert into audit_events (user_id, action, resource_type, resource_id)
       select $1, 'organization_deleted', 'organization', n::text from generate_series(1, 19) n`,
      [person.userId],
    );
    expect((await createAndDelete()).status).toBe(200);
    expect(await createAndDelete()).toMatchObject({
      status: 429,
      body: { message: "A user can delete at most 20 organizations in 24 hours." },
    });
  });
});

describe("a user who owns twenty organizations", () => {
  const refusal = {
    status: 409,
    body: { error: "conflict", message: "A user can own at most 20 organizations." },
  };

  async function createOwnerOfTwenty(): Promise<Person> {
    const person = await api.owner();
    await repeat(19, (at) => person.post("/orgs", { name: `Number ${at}` }));
    return person;
  }

  test("does not get another one by a change of role", async () => {
    const person = await createOwnerOfTwenty();
    await api.sql("insert into memberships (user_id, org_id, role) values ($1, $2, 'admin')", [
      person.userId,
      owner.orgId,
    ]);
    const path = `/orgs/${owner.orgId}/members/${person.userId}`;
    expect(await owner.patch(path, { role: "owner" })).toMatchObject(refusal);
    expect((await owner.patch(path, { role: "viewer" })).status).toBe(200);
  });

  test("does not get another one by an invitation, which stays open", async () => {
    const person = await createOwnerOfTwenty();
    await owner.post(`/orgs/${owner.orgId}/invitations`, { email: person.email, role: "owner" });
    const token = await readInvitation(person.email);
    const accept = () => person.post("/invitations/accept", { token });
    expect(await accept()).toMatchObject(refusal);
    await api.sql(`update memberships set role = 'admin' where user_id = $1 and org_id <> $2`, [
      person.userId,
      person.orgId,
    ]);
    expect((await accept()).status).toBe(200);
  });
});
