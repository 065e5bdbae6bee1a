/** Deliveries from vendors, and the secrets that verify them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DeliveryPage, Receiver, Validator } from "../../../protocol/schemas/webhooks.ts";
import { startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { deliver, createReceiver, SECRET } from "../../harness/fakes/vendor.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const VALIDATORS: Validator[] = ["code_host", "chat_app", "payments", "generic_hmac_sha256"];
const readEvents = async (id: string) =>
  (await owner.get<DeliveryPage>(`/webhook-receivers/${id}/events`)).body;
const readIds = async (id: string) => (await readEvents(id)).events.map((event) => event.id);

describe("a delivery", () => {
  test.each(VALIDATORS)("of %s is stored byte for byte with its headers", async (validator) => {
    const receiver = await createReceiver(owner, validator);
    const body = '{ "id":"evt_1",  "text": "Grüße\\u0000 ✓", "n": 1.0 }\r\n';
    const answer = await deliver(api.server, receiver, {
      body,
      id: "evt_1",
      headers: { "x-vendor-note": "a note", "content-type": "application/json; charset=utf-8" },
    });
    expect(answer.status).toBe(200);
    const { events, cursor } = await readEvents(receiver.id);
    expect(events).toHaveLength(1);
    const [event] = events;
    expect(Buffer.from(event!.body, "base64").toString()).toBe(body);
    expect(event).toMatchObject({
      id: "evt_1",
      contentType: "application/json; charset=utf-8",
      cursor,
    });
    expect(event!.headers).toMatchObject({ "x-vendor-note": "a note" });
    expect(Object.keys(event!.headers).join()).toMatch(/signature/);
    expect(Date.parse(event!.receivedAt)).toBeLessThanOrEqual(Date.now());
  });

  test("that is not text is stored unchanged, also if it is compressed", async () => {
    const receiver = await createReceiver(owner);
    const body = Buffer.from(Array.from({ length: 70_000 }, (_, at) => (at * 7) % 256));
    const headers = { "content-encoding": "gzip", "content-type": "application/octet-stream" };
    expect((await deliver(api.server, receiver, { body, headers })).status).toBe(200);
    const [event] = (await readEvents(receiver.id)).events;
    expect(Buffer.from(event!.body, "base64").equals(body)).toBe(true);
    expect(event!.headers["content-encoding"]).toBe("gzip");
  });

  test.each(VALIDATORS)(
    "of %s with a wrong signature is refused and not stored",
    async (validator) => {
      const receiver = await createReceiver(owner, validator);
      for (const delivering of [
        { secret: "another" },
        {
          headers: { "x-hub-signature-256": "", "x-signature-256": "sha256=00" },
          secret: "another",
        },
        ...(validator === "chat_app" || validator === "payments"
          ? [
              { time: Math.floor(Date.now() / 1000) - 310 },
              { time: Math.floor(Date.now() / 1000) + 330 },
            ]
          : []),
      ]) {
        const answer = await deliver(api.server, receiver, delivering);
        expect([answer.status, answer.headers.get("underpass-error")]).toEqual([
          401,
          "unauthorized",
        ]);
      }
      expect(await readIds(receiver.id)).toEqual([]);
    },
  );

  test.each(VALIDATORS)(
    "of %s that arrives twenty times at once is stored once",
    async (validator) => {
      const receiver = await createReceiver(owner, validator);
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          deliver(api.server, receiver, { id: "evt_1", body: '{"id":"evt_1"}' }),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
      expect(await readIds(receiver.id)).toEqual(["evt_1"]);
      await deliver(api.server, receiver, { id: "evt_2", body: '{"id":"evt_2"}' });
      expect(await readIds(receiver.id)).toEqual(["evt_1", "evt_2"]);
    },
  );

  test("to an unknown receiver gets 404, whatever it is signed with", async () => {
    const deleted = await createReceiver(owner);
    expect((await deliver(api.server, deleted)).status).toBe(200);
    await owner.delete(`/webhook-receivers/${deleted.id}`);
    for (const id of [deleted.id, crypto.randomUUID(), "x", "..%2f"]) {
      const answer = await deliver(api.server, { id, validator: "generic_hmac_sha256" });
      expect([id, answer.status]).toEqual([id, 404]);
    }
    expect((await api.anonymous.get(`/hooks/${deleted.id}`)).status).toBe(405);
  });

  test("of 1 MiB is stored, and a larger one is refused with an error that its vendor can read", async () => {
    const receiver = await createReceiver(owner);
    const largest = Buffer.alloc(1024 * 1024, "m");
    expect((await deliver(api.server, receiver, { body: largest, id: "most" })).status).toBe(200);
    for (const bytes of [1024 * 1024 + 1, 7 * 1024 * 1024, 25 * 1024 * 1024]) {
      const answer = await deliver(api.server, receiver, { body: Buffer.alloc(bytes, "x") });
      expect([bytes, answer.status]).toEqual([bytes, 413]);
      expect(await answer.json()).toMatchObject({ error: "payload_too_large" });
    }
    const { events } = await readEvents(receiver.id);
    expect(events.map(({ id }) => id)).toEqual(["most"]);
    expect(Buffer.from(events[0]!.body, "base64").equals(largest)).toBe(true);
  });

  test("with a chat app's challenge gets it back and is not an event", async () => {
    const receiver = await createReceiver(owner, "chat_app");
    const body = JSON.stringify({ type: "url_verification", challenge: "c-123" });
    const answer = await deliver(api.server, receiver, { body });
    expect([answer.status, await answer.json()]).toEqual([200, { challenge: "c-123" }]);
    expect((await deliver(api.server, receiver, { body, secret: "another" })).status).toBe(401);
    expect(await readIds(receiver.id)).toEqual([]);
    const event = await deliver(api.server, receiver, { body: '{"event_id":"Ev1"}' });
    expect([event.status, await event.text()]).toEqual([200, ""]);
  });

  test("has no headers with addresses that the service added", async () => {
    const receiver = await createReceiver(owner);
    await deliver(api.server, receiver, { headers: { "x-forwarded-for": "10.0.0.1" } });
    const [event] = (await readEvents(receiver.id)).events;
    expect(event!.headers["x-forwarded-for"]).toBeUndefined();
  });
});

describe("a replaced secret", () => {
  const rotate = (id: string, secret: string, overlapHours?: number) =>
    owner.post<Receiver>(`/webhook-receivers/${id}/rotate`, { secret, overlapHours });

  test("stays valid beside the new one for a while, and the one before it does not", async () => {
    const receiver = await createReceiver(owner);
    const deliverWith = async (secret: string) =>
      (await deliver(api.server, receiver, { secret })).status;
    expect(await deliverWith(SECRET)).toBe(200);
    const { status, body } = await rotate(receiver.id, "second");
    expect(status).toBe(200);
    const overlapMs = Date.parse(body.previousSecretUntil!) - Date.now();
    expect(Math.round(overlapMs / 3600_000)).toBe(24);
    expect([await deliverWith(SECRET), await deliverWith("second")]).toEqual([200, 200]);
    await rotate(receiver.id, "third", 1);
    expect(await Promise.all([SECRET, "second", "third"].map(deliverWith))).toEqual([
      401, 200, 200,
    ]);
  });

  test("without an overlap is invalid from the next delivery on", async () => {
    const receiver = await createReceiver(owner, "payments");
    expect((await deliver(api.server, receiver)).status).toBe(200);
    const { body } = await rotate(receiver.id, "new", 0);
    expect(body.previousSecretUntil).toBeNull();
    expect((await deliver(api.server, receiver)).status).toBe(401);
    expect((await deliver(api.server, receiver, { secret: "new" })).status).toBe(200);
  });

  test("is deleted once it has expired", async () => {
    const receiver = await createReceiver(owner);
    await rotate(receiver.id, "second", 1);
    await rotate(receiver.id, "third", 0);
    const secrets = () =>
      api.sql<{ previous_secret: string | null }>(
        "select previous_secret from webhook_receivers where id = $1",
        [receiver.id],
      );
    expect((await secrets())[0]!.previous_secret).toMatch(/^v1\./);
    await api.runCron();
    expect(await secrets()).toEqual([{ previous_secret: null }]);
    expect((await deliver(api.server, receiver, { secret: "second" })).status).toBe(401);
    expect((await deliver(api.server, receiver, { secret: "third" })).status).toBe(200);
  });

  test("must be replaced by a valid one", async () => {
    const { id } = await createReceiver(owner);
    for (const body of [
      {},
      { secret: "" },
      { secret: "s", overlapHours: 169 },
      { secret: "s", overlapHours: -1 },
    ]) {
      expect((await owner.post(`/webhook-receivers/${id}/rotate`, body)).status).toBe(400);
    }
  });
});

test("a receiver whose object has no settings yet accepts its first delivery", async () => {
  const [row] = await api.sql<{ id: string }>(
    `insert into webhook_receivers (org_id, name, validator, secret)
     select org_id, 'unpublished', validator, secret from webhook_receivers
     where id = $1 returning id`,
    [(await createReceiver(owner)).id],
  );
  const unpublished = { id: row!.id, validator: "generic_hmac_sha256" } as const;
  expect((await deliver(api.server, unpublished, { id: "first" })).status).toBe(200);
  expect(await readIds(unpublished.id)).toEqual(["first"]);
});
