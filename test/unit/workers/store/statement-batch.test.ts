/** With a driver that answers when the test says so. */
import type { NeonQueryFunction } from "@neondatabase/serverless";
import { expect, test, vi } from "vitest";
import { StatementBatch } from "../../../../workers/store/statement-batch.ts";

type Driver = NeonQueryFunction<false, false>;

function createDriver() {
  const answer = Promise.withResolvers<unknown[]>();
  const query = vi.fn((text: string, params: unknown[]) => ({ text, params }));
  const transaction = vi.fn((build: (sql: { query: typeof query }) => unknown[]) => {
    build({ query });
    return answer.promise;
  });
  return { answer, query, transaction, driver: { transaction } as unknown as Driver };
}

test("statements are sent in one request, and each gets its own result", async () => {
  const { answer, query, transaction, driver } = createDriver();
  const batch = new StatementBatch();
  const results = [batch.add("select $1", [1]), batch.add("select 2", [])];
  expect(transaction).not.toHaveBeenCalled();
  batch.send(driver);
  expect(transaction).toHaveBeenCalledOnce();
  expect(query.mock.calls).toEqual([
    ["select $1", [1]],
    ["select 2", []],
  ]);
  answer.resolve(["first", "second"]);
  expect(await Promise.all(results)).toEqual(["first", "second"]);
});

test("an error is that of every statement", async () => {
  const { answer, driver } = createDriver();
  const batch = new StatementBatch();
  const results = [batch.add("select 1", []), batch.add("select 2", [])];
  batch.send(driver);
  answer.reject(new Error("no connection"));
  for (const result of results)
    await expect(result).rejects.toMatchObject({ cause: { message: "no connection" } });
});

test("a batch without statements sends nothing", () => {
  const { transaction, driver } = createDriver();
  const batch = new StatementBatch();
  expect(batch.isSent).toBe(false);
  batch.send(driver);
  expect(batch.isSent).toBe(true);
  expect(transaction).not.toHaveBeenCalled();
});
