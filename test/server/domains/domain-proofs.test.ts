/** A verified domain stays with its organization as long as its record is in the DNS and no newer proof exists. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { startApi, waitUntil, type Person, type TestApi } from "../../harness/server/api.ts";
import { message, send, startResolver, type Resolver } from "../../harness/fakes/resolver.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";

let resolver: Resolver;
let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  resolver = await startResolver(api.fakePorts.resolver);
  owner = await api.owner();
});
afterAll(async () => {
  await resolver[Symbol.asyncDispose]();
  await api.stop();
});
afterEach(() => (resolver.override = undefined));

let names = 0;
const newName = () => `handed-over-${(names += 1)}.example`;
const toRecordName = ({ domain }: CustomDomain) => `_svc-challenge.${domain}`;
const publish = (claim: CustomDomain) =>
  (resolver.records[toRecordName(claim)] ??= []).push(claim.verificationToken);
const removeRecord = (claim: CustomDomain) => delete resolver.records[toRecordName(claim)];
const verify = ({ id }: CustomDomain, by = owner) => by.post<CustomDomain>(`/domains/${id}/verify`);

/** Claims a domain, verifies it and binds it to a tunnel without an agent, which answers 502. */
async function createBoundDomain(by = owner, domain = newName()) {
  const { body: claim } = await by.post<CustomDomain>("/domains", { domain });
  publish(claim);
  expect((await verify(claim, by)).status).toBe(200);
  const { body: tunnel } = await by.post<Tunnel>("/tunnels", { localPort: 1 });
  await by.put(`/domains/${claim.id}/bind`, { tunnel_id: tunnel.id });
  expect(await visit(claim)).toBe(502);
  return claim;
}

const visit = async ({ domain }: CustomDomain) =>
  (await exchange(api.server.port, `GET / HTTP/1.1\r\nHost: ${domain}\r\n\r\n`)).status;
const find = async ({ id }: CustomDomain, by = owner) =>
  (await by.get<CustomDomain[]>("/domains")).body.find((domain) => domain.id === id);

async function recheck({ id }: CustomDomain): Promise<void> {
  await api.sql("update domains set next_proof_check_at = now() where id = $1", [id]);
  await api.runCron();
}

/** @returns the actions of the service itself, with their metadata. */
const readEvents = ({ id }: CustomDomain) =>
  api.sql<{ action: string; metadata: Record<string, string> }>(
    `select action, metadata from audit_events
     where resource_id = $1 and user_id is null order by created_at`,
    [id],
  );
const countMails = async (person: Person, subject: string) =>
  (await api.readMailsTo(person.email)).filter((mail) => mail.includes(`Subject: ${subject}`))
    .length;
const waitForMail = (person: Person, subject: string) =>
  waitUntil(async () => (await countMails(person, subject)) > 0);

describe("a newer proof", () => {
  test("takes the domain over from the organization that had verified it, which is notified", async () => {
    const [previous, next] = [await api.owner(), await api.owner()];
    const old = await createBoundDomain(previous);
    const { domain } = old;
    const { status, body: claim } = await next.post<CustomDomain>("/domains", { domain });
    expect(status).toBe(201);
    expect((await verify(claim, next)).status).toBe(400);
    expect(await visit(old)).toBe(502);

    publish(claim);
    expect(await verify(claim, next)).toMatchObject({ status: 200, body: { verified: true } });
    expect(await find(old, previous)).toBeUndefined();
    expect(await visit(old)).toBe(404);
    expect(await readEvents(old)).toEqual([
      { action: "domain_released", metadata: { domain, reason: "proven_by_another" } },
    ]);
    await waitForMail(previous, `${domain} was released`);
    const { body: tunnel } = await next.post<Tunnel>("/tunnels", { localPort: 1 });
    const bound = await next.put(`/domains/${claim.id}/bind`, { tunnel_id: tunnel.id });
    expect(bound.status).toBe(200);
    // The old record is still there, but its claim is not.
    expect((await verify(old, previous)).status).toBe(404);
  });

  test("of two organizations at once leaves the domain with one of them", async () => {
    const people = [await api.owner(), await api.owner()];
    const domain = newName();
    const claims = await Promise.all(
      people.map(async (by) => (await by.post<CustomDomain>("/domains", { domain })).body),
    );
    claims.forEach(publish);
    const replies = await Promise.all(claims.map((claim, n) => verify(claim, people[n])));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 404]);
    const rows = await api.sql(
      "select verified_at is not null as v from domains where domain = $1",
      [domain],
    );
    expect(rows).toEqual([{ v: true }]);
  });
});

describe("a record that is missing", () => {
  test("is reported once to the owners, and the domain works as before", async () => {
    const person = await api.owner();
    const claim = await createBoundDomain(person);
    removeRecord(claim);
    await recheck(claim);
    const subject = `The DNS record of ${claim.domain} is missing`;
    await waitForMail(person, subject);
    const mail = (await api.readMailsTo(person.email)).at(-1)!;
    expect(mail).toContain(toRecordName(claim));
    expect(mail).toContain(claim.verificationToken);
    const found = await find(claim, person);
    expect(found).toMatchObject({ verified: true, proofMissingSince: expect.any(String) });
    expect(await visit(claim)).toBe(502);

    await recheck(claim);
    expect(await find(claim, person)).toEqual(found);
    expect(await countMails(person, subject)).toBe(1);
    const [event, ...others] = await readEvents(claim);
    expect(others).toEqual([]);
    expect(event!.action).toBe("domain_proof_missing");
    const days =
      (Date.parse(event!.metadata.releaseAt!) - Date.parse(found!.proofMissingSince!)) / 86_400_000;
    expect(days).toBe(7);
  });

  test("for 7 days releases the domain, with an event and a mail", async () => {
    const person = await api.owner();
    const claim = await createBoundDomain(person);
    const { domain, id } = claim;
    removeRecord(claim);
    await recheck(claim);
    await api.sql(
      "update domains set proof_missing_since = now() - interval '6 days 23 hours' where id = $1",
      [id],
    );
    await recheck(claim);
    expect(await visit(claim)).toBe(502);
    await api.sql(
      "update domains set proof_missing_since = now() - interval '7 days' where id = $1",
      [id],
    );
    await recheck(claim);
    expect(await find(claim, person)).toBeUndefined();
    expect(await visit(claim)).toBe(404);
    await waitForMail(person, `${domain} was released`);
    expect((await readEvents(claim)).at(-1)).toEqual({
      action: "domain_released",
      metadata: { domain, reason: "proof_missing" },
    });
  });

  test("and returns in time changes nothing, at the next check or when its owner verifies again", async () => {
    for (const check of [recheck, verify]) {
      const claim = await createBoundDomain();
      removeRecord(claim);
      await recheck(claim);
      if (check === verify) expect((await verify(claim)).status).toBe(400);
      publish(claim);
      await check(claim);
      expect(await find(claim)).toMatchObject({ verified: true, proofMissingSince: null });
      expect(await visit(claim)).toBe(502);
    }
  });

  test("is not assumed when the resolver fails, however long", async () => {
    const claim = await createBoundDomain();
    removeRecord(claim);
    await recheck(claim);
    await api.sql(
      "update domains set proof_missing_since = now() - interval '30 days' where id = $1",
      [claim.id],
    );
    resolver.override = (question, response) => send(response, message(question, { rcode: 2 }));
    await recheck(claim);
    expect(await find(claim)).toMatchObject({ verified: true });
    expect(await visit(claim)).toBe(502);
  });
});

test("a record is looked up once a day", async () => {
  const claim = await createBoundDomain();
  await recheck(claim);
  const countQuestions = () =>
    resolver.questions.filter(({ name }) => name === toRecordName(claim)).length;
  const before = countQuestions();
  await api.runCron();
  expect(countQuestions()).toBe(before);
  const [row] = await api.sql<{ hours: number }>(
    "select extract(epoch from next_proof_check_at - now())::float8 / 3600 as hours from domains where id = $1",
    [claim.id],
  );
  expect(Math.round(row!.hours)).toBe(24);
});
