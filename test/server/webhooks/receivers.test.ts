/** Webhook receivers in the API: created, read, acknowledged, deleted. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DeliveryPage, Receiver, ReceiverState } from "../../../protocol/schemas/webhooks.ts";
import {
  createCaller,
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { damageObject } from "../../harness/unreadable-objects.ts";
import { deliver, createReceiver, SECRET } from "../../harness/fakes/vendor.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const readEvents = async (id: string, query = "", by: { get: Person["get"] } = owner) =>
  (await by.get<DeliveryPage>(`/webhook-receivers/${id}/events${query}`)).body;
const readIds = async (id: string, query = "") =>
  (await readEvents(id, query)).events.map((event) => event.id);

describe("a receiver", () => {
  test("is created, listed, read and deleted, and its secret is never shown", async () => {
    const person = await api.owner();
    const created = await person.post<Receiver>("/webhook-receivers", {
      validator: "payments",
      secret: "whsec_never_shown",
      name: "Payments of the shop",
    });
    expect(created.status).toBe(201);
    const { id } = created.body;
    expect(created.body).toEqual({
      id,
      name: "Payments of the shop",
      validator: "payments",
      url: `http://localhost:${api.server.port}/hooks/${id}`,
      previousSecretUntil: null,
      createdAt: expect.any(String),
    });
    expect((await person.get<Receiver[]>("/webhook-receivers")).body).toEqual([created.body]);
    const state = await person.get<ReceiverState>(`/webhook-receivers/${id}`);
    expect(state.body).toEqual({
      ...created.body,
      kept: 0,
      lastReceivedAt: null,
      acknowledged: "0",
    });

    expect((await person.delete(`/webhook-receivers/${id}`)).status).toBe(200);
    expect((await person.delete(`/webhook-receivers/${id}`)).status).toBe(404);
    expect((await person.get(`/webhook-receivers/${id}`)).status).toBe(404);
    expect((await person.get<Receiver[]>("/webhook-receivers")).body).toEqual([]);
    const actions = await api.sql<{ action: string }>(
      "select action from audit_events where resource_id = $1 order by created_at",
      [id],
    );
    expect(actions.map(({ action }) => action)).toEqual(["receiver_created", "receiver_deleted"]);
    expect(api.server.output).not.toContain("whsec_never_shown");
  });

  test("has its secret stored encrypted", async () => {
    const { id } = await createReceiver(owner);
    const [row] = await api.sql<{ secret: string }>(
      "select secret from webhook_receivers where id = $1",
      [id],
    );
    expect(row!.secret).toMatch(/^v1\./);
    expect(row!.secret).not.toContain(SECRET);
  });

  test.each([
    [{}, "name"],
    [{ validator: "email" }, "validator"],
    [{ secret: "" }, "secret"],
    [{ secret: "x".repeat(1_001) }, "secret"],
    [{ name: "\n" }, "name"],
    [{ name: 7 }, "name"],
  ])("is not created from %j", async (change, field) => {
    const valid = { validator: "payments", secret: "s", name: "n" };
    const body = field in change ? { ...valid, ...change } : { ...valid, [field]: undefined };
    const { status, body: error } = await owner.post<{ error: string; fields: { path: string }[] }>(
      "/webhook-receivers",
      body,
    );
    expect([status, error.error]).toEqual([400, "invalid_request"]);
    expect(error.fields.map(({ path }) => path)).toContain(field);
  });

  test("is one of at most a hundred, however many are created at once", async () => {
    const person = await api.owner();
    await api.sql(
      `insert into webhook_receivers (org_id, name, validator, secret)
       select $1, 'many', 'payments', 'x' from generate_series(1, 97)`,
      [person.orgId],
    );
    const body = { validator: "payments", secret: "s", name: "more" };
    const created = await Promise.all(
      Array.from({ length: 6 }, () => person.post("/webhook-receivers", body)),
    );
    expect(created.map(({ status }) => status).sort()).toEqual([201, 201, 201, 409, 409, 409]);
  });
});

describe("reading", () => {
  test("continues from a cursor, page by page, in the order of arrival", async () => {
    const receiver = await createReceiver(owner);
    for (const id of ["e-1", "e-2", "e-3", "e-4", "e-5"])
      await deliver(api.server, receiver, { id });
    const first = await readEvents(receiver.id, "?limit=2");
    expect(first.events.map(({ id }) => id)).toEqual(["e-1", "e-2"]);
    expect(first.events[1]!.cursor).toBe(first.cursor);
    const second = await readEvents(receiver.id, `?limit=2&after=${first.cursor}`);
    expect(second.events.map(({ id }) => id)).toEqual(["e-3", "e-4"]);
    const third = await readEvents(receiver.id, `?after=${second.cursor}`);
    expect(third.events.map(({ id }) => id)).toEqual(["e-5"]);
    expect(await readEvents(receiver.id, `?after=${third.cursor}`)).toEqual({
      events: [],
      cursor: third.cursor,
    });
    const since = third.events[0]!.receivedAt;
    expect((await readIds(receiver.id, `?since=${since}`)).at(-1)).toBe("e-5");
    expect(await readIds(receiver.id, "?since=2999-01-01T00:00:00Z")).toEqual([]);
    const invalid =
      "after=x after=-1 limit=0 limit=1001 wait=31 wait=-1 wait= wait=0x1 wait=1e1 since=now";
    for (const query of invalid.split(" ")) {
      const { status } = await owner.get(`/webhook-receivers/${receiver.id}/events?${query}`);
      expect([query, status]).toEqual([query, 400]);
    }
  });

  test("waits for the next delivery when asked to", async () => {
    const receiver = await createReceiver(owner);
    const waiting = readEvents(receiver.id, "?wait=30");
    await deliver(api.server, receiver, { id: "late" });
    expect((await waiting).events.map(({ id }) => id)).toEqual(["late"]);
    expect((await readEvents(receiver.id, "?wait=0.1&after=1")).events).toEqual([]);
  });

  test("returns nothing to a reader that loses access while it waits", async () => {
    const receiver = await createReceiver(owner);
    const token = await mintToken(owner);
    const agent = createCaller(api.server, { authorization: `Bearer ${token.wireBytes}` });
    const guest = await api.colleague(owner, "viewer");
    const path = `/webhook-receivers/${receiver.id}/events`;
    const waiting = [agent.get(`${path}?wait=30`), guest.get(`${path}?wait=30`)];
    // Both requests are waiting now, or will be refused. In neither case may they return a delivery.
    expect((await agent.get(path)).status).toBe(200);
    expect((await guest.get(path)).status).toBe(200);
    await owner.delete(`/tokens/${token.nonce}`);
    await owner.delete(`/orgs/${owner.orgId}/members/${guest.userId}`);
    await deliver(api.server, receiver);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([401, 401]);
  });

  test("is acknowledged with a cursor that never moves back", async () => {
    const receiver = await createReceiver(owner);
    for (const id of ["a-1", "a-2"]) await deliver(api.server, receiver, { id });
    const { events } = await readEvents(receiver.id);
    const acknowledge = (cursor: string) =>
      owner.post<{ cursor: string }>(`/webhook-receivers/${receiver.id}/ack`, { cursor });
    expect((await acknowledge(events[1]!.cursor)).body).toEqual({ cursor: events[1]!.cursor });
    expect((await acknowledge(events[0]!.cursor)).body).toEqual({ cursor: events[1]!.cursor });
    expect((await acknowledge("99999")).body).toEqual({ cursor: events[1]!.cursor });
    expect((await acknowledge("soon")).status).toBe(400);
    const { body } = await owner.get<ReceiverState>(`/webhook-receivers/${receiver.id}`);
    expect(body).toMatchObject({ kept: 2, acknowledged: events[1]!.cursor });
    expect(body.lastReceivedAt).toBe(events[1]!.receivedAt);
  });

  test("accepts an unrestricted agent token until it is revoked", async () => {
    const receiver = await createReceiver(owner);
    await deliver(api.server, receiver, { id: "for-agents" });
    const token = await mintToken(owner);
    const agent = createCaller(api.server, { authorization: `Bearer ${token.wireBytes}` });
    expect((await readEvents(receiver.id, "", agent)).events).toHaveLength(1);
    expect((await agent.get(`/webhook-receivers/${receiver.id}`)).status).toBe(200);
    expect((await agent.get<Receiver[]>("/webhook-receivers")).body.map(({ id }) => id)).toContain(
      receiver.id,
    );
    const ack = await agent.post(`/webhook-receivers/${receiver.id}/ack`, { cursor: "1" });
    expect(ack.status).toBe(200);
    for (const status of [
      (await agent.post("/webhook-receivers", { validator: "payments", secret: "s", name: "n" }))
        .status,
      (await agent.delete(`/webhook-receivers/${receiver.id}`)).status,
      (await agent.post(`/webhook-receivers/${receiver.id}/rotate`, { secret: "s" })).status,
      (await agent.get("/events")).status,
    ]) {
      expect(status).toBe(401);
    }
    await owner.delete(`/tokens/${token.nonce}`);
    expect((await agent.get(`/webhook-receivers/${receiver.id}/events`)).status).toBe(401);
  });

  test("refuses tokens for some names, one project, another organization or minting", async () => {
    const { id } = await createReceiver(owner);
    const path = `/webhook-receivers/${id}/events`;
    const readStatusWith = async (bearer: string) =>
      (await createCaller(api.server, { authorization: `Bearer ${bearer}` }).get(path)).status;
    const restricted = await mintToken(owner, { allowedSubdomains: ["api"] });
    await owner.post("/projects", { slug: "restricted", name: "Restricted" });
    const { body: projectToken } = await owner.post<{ wireBytes: string }>(
      "/projects/restricted/tokens",
      {
        name: "t",
      },
    );
    const { body: master } = await owner.post<{ wireBytes: string; bearer: string }>(
      "/tokens/master",
      {
        name: "m",
      },
    );
    const foreignToken = await mintToken(await api.owner());
    expect(await readStatusWith(restricted.wireBytes)).toBe(403);
    expect(await readStatusWith(projectToken.wireBytes)).toBe(403);
    expect(await readStatusWith(master.wireBytes)).toBe(401);
    expect(await readStatusWith(master.bearer)).toBe(401);
    expect(await readStatusWith(foreignToken.wireBytes)).toBe(404);
    expect(await readStatusWith("AAAA")).toBe(401);
  });
});

test("a receiver whose object does not answer is unavailable to its owner and its vendor", async () => {
  const created = await createReceiver(owner);
  const id = crypto.randomUUID();
  await damageObject(api.server, "Receiver", id);
  await api.sql("update webhook_receivers set id = $2 where id = $1", [created.id, id]);
  const path = `/webhook-receivers/${id}`;
  const replies = [
    await owner.get(path),
    await owner.get(`${path}/events`),
    await owner.get(`${path}/events?wait=1`),
    await owner.post(`${path}/ack`, { cursor: "0" }),
    await deliver(api.server, { ...created, id }),
  ];
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 503));
  await owner.delete(path);
});

test("a deleted organization's receivers are deleted with their deliveries", async () => {
  const person = await api.owner();
  const receiver = await createReceiver(person);
  expect((await deliver(api.server, receiver)).status).toBe(200);
  expect((await person.delete(`/orgs/${person.orgId}`)).status).toBe(200);
  await waitUntil(async () => (await deliver(api.server, receiver)).status === 404, 60_000);
  const remaining = await api.sql("select 1 from webhook_receivers where org_id = $1", [
    person.orgId,
  ]);
  expect(remaining).toEqual([]);
});
