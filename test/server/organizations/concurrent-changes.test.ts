/** Different requests that change one account, or one organization, at the same time. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AccessToken } from "../../../protocol/schemas/accounts/accounts.ts";
import type { Organization } from "../../../protocol/schemas/organizations/organizations.ts";
import {
  createCaller,
  mintToken,
  newEmail,
  PASSWORD,
  startApi,
  waitForBlockedStatement,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { insertAccount, readEncryptionConfig } from "../../harness/server/accounts.ts";
import {
  GATEWAY_QUERY_CONNECTIONS,
  GATEWAY_SESSION_CONNECTIONS,
} from "../../../self-host/gateway/gateway.ts";
import { newKey } from "../../harness/server/private-networks.ts";
import { newDomain } from "../../harness/server/resources.ts";
import { createRandom } from "../../harness/random.ts";
import {
  startChallenge,
  generateCode,
  confirm,
  enroll,
  enableSecondFactor,
} from "../../harness/browser/second-factor.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const OTHER_PASSWORD = "another good password";

/** Runs them concurrently: their order must not matter. */
async function runConcurrently(...actions: (() => Promise<unknown>)[]): Promise<void> {
  await Promise.all(actions.map((action) => action()));
}

async function isAccepted(accessToken: string): Promise<boolean> {
  const caller = createCaller(api.server, { authorization: `Bearer ${accessToken}` });
  return (await caller.get("/auth/me")).status === 200;
}

test("an address that is verified during another sign-up has one password", async () => {
  const config = await readEncryptionConfig(api.server.dataDir);
  for (let round = 0; round < 6; round++) {
    const email = newEmail();
    const code = await insertAccount(api.sql, config, email);
    let confirmed = 0;
    await runConcurrently(
      async () => {
        const { status } = await api.anonymous.post("/auth/verify-email-otp", { email, code });
        confirmed = status;
      },
      () => api.anonymous.post("/auth/signup", { email, password: OTHER_PASSWORD }),
    );
    const logIn = async (password: string) =>
      (await api.anonymous.post("/auth/login", { email, password })).status;
    // The code belongs to the first password: it confirms that password, or is void, and then neither password is valid.
    const expected = confirmed === 200 ? [200, 401] : [401, 401];
    expect([await logIn(PASSWORD), await logIn(OTHER_PASSWORD)]).toEqual(expected);
  }
});

test("a renewal during a logout leaves no valid token", async () => {
  for (let round = 0; round < 8; round++) {
    const person = await api.owner();
    const browser = createCaller(api.server, { cookie: person.cookie });
    const renewed: string[] = [];
    const renew = async () => {
      const { status, body } = await browser.post<AccessToken>("/auth/refresh");
      if (status === 200) renewed.push(body.access_token);
    };
    await runConcurrently(renew, () => person.post("/auth/logout"), renew);
    for (const token of [person.accessToken, ...renewed])
      expect(await isAccepted(token)).toBe(false);
  }
});

test("turning on the second factor leaves no other session, even one that is renewed or opened at the same time", async () => {
  for (let round = 0; round < 5; round++) {
    const person = await api.owner();
    const otherSession = await api.logIn(person.email, PASSWORD);
    const { secret, cookie } = await enroll(person);
    const otherTokens: string[] = [otherSession.accessToken];
    const keepToken = ({ body }: { body: { access_token?: string } }) => {
      if (body.access_token !== undefined) otherTokens.push(body.access_token);
    };
    await runConcurrently(
      () => confirm(api, person, cookie, { code: generateCode(secret) }),
      async () =>
        keepToken(
          await createCaller(api.server, { cookie: otherSession.cookie }).post("/auth/refresh"),
        ),
      async () => keepToken(await api.anonymous.post("/auth/login", person)),
    );
    expect(await isAccepted(person.accessToken)).toBe(true);
    for (const token of otherTokens) expect(await isAccepted(token)).toBe(false);
  }
});

test("turning off the second factor during a login does not accept a used code", async () => {
  const person = await api.owner();
  const { recoveryCodes } = await enableSecondFactor(api, person);
  const [recovery_code = ""] = recoveryCodes;
  const challenge_token = await startChallenge(api, person);
  const statuses: number[] = [];
  const send = async (reply: Promise<{ status: number }>) =>
    void statuses.push((await reply).status);
  await runConcurrently(
    () => send(person.post("/auth/mfa/disable", { recovery_code })),
    () => send(api.anonymous.post("/auth/login/mfa", { challenge_token, recovery_code })),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
});

test("a member who becomes a viewer retains no token that was minted at the same time", async () => {
  const owner = await api.owner();
  for (let round = 0; round < 5; round++) {
    const member = await api.colleague(owner, "member");
    const mint = () => mintToken(member).catch(() => undefined);
    const path = `/orgs/${owner.orgId}/members/${member.userId}`;
    await runConcurrently(mint, mint, () => owner.patch(path, { role: "viewer" }), mint, mint);
    const validTokens = "select 1 from tokens where created_by = $1 and revoked_at is null";
    expect(await api.sql(validTokens, [member.userId])).toEqual([]);
  }
});

test("a role in another organization gives no rights to a change that was begun before the removal from this one", async () => {
  const [owner, other] = [await api.owner(), await api.owner()];
  const member = await api.colleague(owner, "member");
  await api.sql("insert into memberships (user_id, org_id, role) values ($1, $2, 'member')", [
    member.userId,
    other.orgId,
  ]);
  await api.sql("begin");
  await api.sql("delete from memberships where user_id = $1 and org_id = $2", [
    member.userId,
    owner.orgId,
  ]);
  const minted = member.post("/tokens", { name: "late" });
  await waitForBlockedStatement(api);
  await api.sql("commit");
  expect((await minted).status).toBe(403);
});

test("deleting the only organization while its owner switches, renews and signs in fails no request", async () => {
  for (let round = 0; round < 5; round++) {
    const person = await api.owner();
    const statuses: Record<string, number> = {};
    const recordStatus = async (name: string, reply: Promise<{ status: number }>) => {
      statuses[name] = (await reply).status;
    };
    await runConcurrently(
      () => recordStatus("switch", person.post(`/orgs/${person.orgId}/switch`)),
      () => recordStatus("delete", person.delete(`/orgs/${person.orgId}`)),
      () =>
        recordStatus(
          "renew",
          createCaller(api.server, { cookie: person.cookie }).post("/auth/refresh"),
        ),
      () => recordStatus("login", api.anonymous.post("/auth/login", person)),
    );
    expect(statuses).toMatchObject({ delete: 200, renew: 200, login: 200 });
    expect([200, 403, 404]).toContain(statuses.switch);
    const home = await api.logIn(person.email, PASSWORD);
    expect(await isAccepted(home.accessToken)).toBe(true);
    const { body: orgs } = await home.get<Organization[]>("/orgs");
    expect(orgs.map(({ id, role }) => [id === person.orgId, role])).toEqual([[false, "owner"]]);
  }
});

test("a sign-in waits for a removal in progress, and opens an organization that the user still belongs to", async () => {
  const person = await api.owner();
  await api.sql("begin");
  await api.sql("delete from memberships where user_id = $1", [person.userId]);
  const signedIn = api.logIn(person.email, PASSWORD);
  await waitForBlockedStatement(api);
  await api.sql("commit");
  const { orgId, accessToken } = await signedIn;
  expect(orgId).not.toBe(person.orgId);
  expect(await isAccepted(accessToken)).toBe(true);
});

test("a change of an organization's budget locks the organization before the caller's membership, as a removal does", async () => {
  const person = await api.owner();
  await api.sql("begin");
  await api.sql("select 1 from organizations where id = $1 for no key update", [person.orgId]);
  const path = `/orgs/${person.orgId}/budget`;
  const changed = person.put(path, { monthlyBudgetUsdCents: 5 });
  await waitForBlockedStatement(api);
  await api.sql("select 1 from memberships where user_id = $1 for update nowait", [person.userId]);
  await api.sql("commit");
  expect((await changed).status).toBe(200);
});

test("changes of one organization that wait for each other do not delay another organization", async () => {
  const [busy, other] = await Promise.all([api.owner(), api.owner()]);
  await api.sql("begin");
  await api.sql("select 1 from organizations where id = $1 for update", [busy.orgId]);
  const names = Array.from({ length: 2 * GATEWAY_SESSION_CONNECTIONS }, (_, at) => `busy ${at}`);
  const waiting = Promise.all(names.map((name) => busy.patch(`/orgs/${busy.orgId}`, { name })));
  await waitForBlockedStatement(api);
  // The others of the organization hold or await a connection too when this one is sent.
  expect(await other.patch(`/orgs/${other.orgId}`, { name: "other" })).toMatchObject({
    status: 200,
  });
  await api.sql("commit");
  expect((await waiting).map(({ status }) => status)).toEqual(names.map(() => 200));
});

test("slow queries of one organization do not delay another organization", async () => {
  const [busy, other] = await Promise.all([api.owner(), api.owner()]);
  await api.sql("begin");
  await api.sql("lock table audit_events");
  const paths = Array.from(
    { length: 2 * GATEWAY_QUERY_CONNECTIONS },
    (_, at) => `/events?limit=${at + 1}`,
  );
  const waiting = Promise.all(paths.map((path) => busy.get(path)));
  await waitForBlockedStatement(api, GATEWAY_QUERY_CONNECTIONS / 2);
  expect(await other.get("/tunnels")).toMatchObject({ status: 200 });
  await api.sql("commit");
  expect((await waiting).map(({ status }) => status)).toEqual(paths.map(() => 200));
});

interface Actor extends Person {
  orgs: string[];
}

/** The requests of an owner of several organizations that change them and their members. */
function listRequests(actor: Actor, others: Actor[], pick: <Item>(items: readonly Item[]) => Item) {
  const org = () => `/orgs/${pick(actor.orgs)}`;
  const other = () => pick(others);
  const json = (body: object) => ({
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return [
    () => api.anonymous.post("/auth/login", actor),
    () => createCaller(api.server, { cookie: actor.cookie }).post("/auth/refresh"),
    () => actor.post(`${org()}/switch`),
    () => actor.post("/tokens", { name: "t" }),
    () => actor.post("/tunnels", { localPort: 1 }),
    () => actor.post(`${org()}/invitations`, { email: other().email, role: "admin" }),
    () => actor.patch(`${org()}/members/${other().userId}`, { role: pick(["viewer", "owner"]) }),
    () => actor.delete(`${org()}/members/${other().userId}`),
    () => actor.send("PATCH", org(), json({ name: pick(["a", "b"]) })),
    () => actor.put(`${org()}/budget`, { monthlyBudgetUsdCents: null }),
    () => api.anonymous.post("/auth/signup", { email: actor.email, password: OTHER_PASSWORD }),
    () => api.anonymous.post("/auth/forgot", { email: actor.email }),
    () => actor.post("/auth/mfa/disable", { password: PASSWORD }),
    () => actor.get("/auth/sessions"),
    () => actor.get("/events"),
  ];
}

test("concurrent changes to the same organizations cause neither a deadlock nor an invalid state", async () => {
  const random = createRandom(3);
  const people: Actor[] = [];
  for (let count = 0; count < 4; count++) people.push({ ...(await api.owner()), orgs: [] });
  const orgs = people.map(({ orgId }) => orgId);
  for (const person of people) {
    person.orgs = orgs;
    const join =
      "insert into memberships (user_id, org_id, role) select $1, unnest($2::uuid[]), 'owner'";
    await api.sql(`${join} on conflict do nothing`, [person.userId, orgs]);
  }
  const failed: unknown[] = [];
  const worker = async () => {
    for (let turn = 0; turn < 20; turn++) {
      const actor = random.pick(people);
      const sendRequest = random.pick(listRequests(actor, people, (items) => random.pick(items)));
      const { status, body } = await sendRequest();
      if (status >= 500) failed.push(body);
    }
  };
  await Promise.all(Array.from({ length: 12 }, worker));
  expect(failed).toEqual([]);
  const ownerless = `select id from organizations o where id = any($1) and not exists
    (select 1 from memberships m where m.org_id = o.id and m.role = 'owner')`;
  expect(await api.sql(ownerless, [orgs])).toEqual([]);
  const orphans = `select t.id from tokens t left join memberships m
    on m.user_id = t.created_by and m.org_id = t.org_id
    where t.org_id = any($1) and t.revoked_at is null and coalesce(m.role, 'viewer') = 'viewer'`;
  expect(await api.sql(orphans, [orgs])).toEqual([]);
  expect(api.server.output).not.toContain("deadlock");
});

/** Requests that change the tunnels, tokens, names, networks and receivers of one organization. */
function listResourceRequests(
  actor: Person,
  domain: string,
  pick: <Item>(items: readonly Item[]) => Item,
) {
  const name = () => pick(["deadlock-a", "deadlock-b"]);
  const slug = () => pick(["first", "second"]);
  async function find(path: string, key = "id"): Promise<string> {
    const { body } = await actor.get<Record<string, string>[] | object>(path);
    return (Array.isArray(body) && body.length > 0 && pick(body)[key]) || crypto.randomUUID();
  }
  const tunnel = async () => `/tunnels/${await find("/tunnels")}`;
  const token = async () => `/tokens/${await find("/tokens", "nonce")}`;
  const network = async () => `/private-networks/${await find("/private-networks")}`;
  const receiver = async () => `/webhook-receivers/${await find("/webhook-receivers")}`;
  return [
    () => actor.post("/tunnels", { localPort: 1, subdomain: name() }),
    () => actor.post("/tunnels", { localPort: 1, project: slug() }),
    async () => actor.delete(await tunnel()),
    async () => actor.post(`${await tunnel()}/${pick(["start", "stop"])}`),
    async () => actor.put(`${await tunnel()}/shards`, { shards: pick([1, 2]) }),
    async () => actor.put(`${await tunnel()}/policy`, { actions: [] }),
    () => actor.post("/tokens", { name: "t", tunnel: name() }),
    () => actor.post(`/projects/${slug()}/tokens`, { name: "t" }),
    () => actor.post("/tokens/master", { name: "m" }),
    async () => actor.delete(await token()),
    async () => actor.post(`${await token()}/rotate`, {}),
    async () => actor.put(`${await token()}/budget`, { monthlyBudgetUsdCents: 500 }),
    () => actor.post("/projects", { slug: slug(), name: "p" }),
    () => actor.delete(`/projects/${slug()}`),
    async () => {
      const added = await actor.post<{ id: string }>("/domains", { domain });
      await api.sql("update domains set verified_at = now() where id::text = $1", [added.body.id]);
      return added;
    },
    async () => actor.delete(`/domains/${await find("/domains")}`),
    async () =>
      actor.put(`/domains/${await find("/domains")}/bind`, { tunnel_id: await find("/tunnels") }),
    async () => actor.delete(`/domains/${await find("/domains")}/bind`),
    () => actor.post("/reserved-subdomains", { subdomain: name() }),
    async () => actor.delete(`/reserved-subdomains/${await find("/reserved-subdomains")}`),
    () => actor.post("/private-networks", { name: name(), cidr: "10.88.0.0/24" }),
    async () => actor.delete(await network()),
    async () => actor.post(`${await network()}/devices`, { name: name(), public_key: newKey() }),
    async () => {
      const devices = `${await network()}/devices`;
      return actor.delete(`${devices}/${await find(devices)}`);
    },
    () =>
      actor.post("/webhook-receivers", { name: name(), validator: "chat_app", secret: "secret" }),
    async () => actor.delete(await receiver()),
    async () => actor.post(`${await receiver()}/rotate`, { secret: "other" }),
    async () => actor.delete(`/connections/${await find("/connections", "agent_id")}`),
    async () => {
      const minted = await actor.post<{ wireBytes?: string }>("/tokens", { name: "agent" });
      const port = { port: 1, subdomain: name() };
      (await api.connectAgent(minted.body.wireBytes, port)).socket?.terminate();
      return minted;
    },
  ];
}

test("concurrent changes to the resources of one organization cause no deadlock", async () => {
  const random = createRandom(5);
  const owner = await api.owner();
  const people = [owner, await api.colleague(owner, "owner"), await api.colleague(owner, "admin")];
  const [domain, failed] = [newDomain(), [] as unknown[]];
  const worker = async () => {
    for (let turn = 0; turn < 15; turn++) {
      const requests = listResourceRequests(random.pick(people), domain, (items) =>
        random.pick(items),
      );
      const { status, body } = await random.pick(requests)();
      if (status >= 500) failed.push(body);
    }
  };
  await Promise.all([api.runCron(), ...Array.from({ length: 12 }, worker)]);
  expect(failed).toEqual([]);
  expect(api.server.output).not.toContain("deadlock");
});
