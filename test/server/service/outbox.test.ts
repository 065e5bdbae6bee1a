import { afterAll, beforeAll, expect, test } from "vitest";
import { startApi, type TestApi } from "../../harness/server/api.ts";

interface OutboxRow {
  attempts: number;
  last_error: string | null;
  parked_at: Date | null;
}

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

/** Writes a message that no handler can deliver, as a newer version could have left it. */
async function insertUndeliverable(age: string): Promise<string> {
  const [row] = await api.sql<{ id: string }>(
    "insert into outbox (kind, payload, created_at) values ('from_a_newer_version', '{}', now() - $1::interval) returning id",
    [age],
  );
  return row!.id;
}

async function findMessage(id: string): Promise<OutboxRow | undefined> {
  const [row] = await api.sql<OutboxRow>(
    "select attempts, last_error, parked_at from outbox where id = $1",
    [id],
  );
  return row;
}

test("a message that could not be delivered says why, and is retried", async () => {
  const id = await insertUndeliverable("1 day");
  await api.runCron();
  const row = await findMessage(id);
  expect(row).toMatchObject({ attempts: 1, parked_at: null });
  expect(row?.last_error).toContain("no handler for messages of kind from_a_newer_version");
  await api.sql("delete from outbox where id = $1", [id]);
});

test("a message that could not be delivered for a week is parked until the operator releases it", async () => {
  const id = await insertUndeliverable("8 days");
  await api.runCron();
  expect((await findMessage(id))?.parked_at).toBeInstanceOf(Date);
  expect(api.server.output).toContain('"messages_parked"');

  await api.runCron();
  expect(await findMessage(id)).toMatchObject({ attempts: 0 });

  await api.sql("update outbox set parked_at = null, created_at = now() where id = $1", [id]);
  await api.runCron();
  expect(await findMessage(id)).toMatchObject({ attempts: 1 });
  await api.sql("delete from outbox where id = $1", [id]);
});
