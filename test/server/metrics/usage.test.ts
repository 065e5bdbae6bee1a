/** The usage of tokens by month. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OrganizationUsage } from "../../../protocol/schemas/metrics.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

async function createTunnel(): Promise<string> {
  return (await owner.post<Tunnel>("/tunnels", { localPort: 1 })).body.id;
}

describe("usage", () => {
  const usage = async (query = "") => (await owner.get<OrganizationUsage>(`/usage${query}`)).body;
  async function use(tokenId: string, bytes: number, requests: number, monthsAgo = 0) {
    await api.sql(
      `insert into token_usage select $1, to_char(now() at time zone 'utc' - $2 * interval '1 month',
        'YYYY-MM'), $3, $4, $5`,
      [tokenId, monthsAgo, await createTunnel(), bytes, requests],
    );
  }

  test("is that of this month, by token and in total, with costs by the price list", async () => {
    owner = await api.owner();
    const [one, two] = [await mintToken(owner), await mintToken(owner)];
    await use(one.id, 1.5e9, 1_000_000);
    await use(one.id, 0.5e9, 0);
    await use(two.id, 0.15e9, 3);
    await use(two.id, 7e9, 7, 1);
    await owner.put(`/tokens/${one.nonce}/budget`, { monthlyBudgetUsdCents: 500 });
    const { tokens, ...sum } = await usage();
    const month = new Date().toISOString().slice(0, 7);
    expect(sum).toEqual({ month, bytes: 2.15e9, requests: 1_000_003, costUsdCents: 71 });
    const rows = Object.fromEntries(tokens.map((row) => [row.id, row]));
    expect(rows[one.id]).toEqual({
      id: one.id,
      nonce: one.nonce,
      name: "test",
      kind: "agent",
      revoked: false,
      bytes: 2e9,
      requests: 1_000_000,
      costUsdCents: 70,
      monthlyBudgetUsdCents: 500,
      spentUsdCents: 70,
    });
    expect(rows[two.id]).toMatchObject({ bytes: 0.15e9, requests: 3, costUsdCents: 1 });
    const { tokens: first } = await usage("?limit=1");
    const { tokens: rest } = await usage(`?after=${first[0]!.id}`);
    expect([...first, ...rest]).toEqual(tokens);
  });

  test("of an earlier month is available, and an invalid month is refused", async () => {
    owner = await api.owner();
    const token = await mintToken(owner);
    await use(token.id, 7e9, 7, 1);
    const [{ month }] = (await api.sql(
      "select to_char(now() at time zone 'utc' - interval '1 month', 'YYYY-MM') as month",
    )) as [{ month: string }];
    expect(await usage(`?month=${month}`)).toMatchObject({
      month,
      bytes: 7e9,
      requests: 7,
      costUsdCents: 70,
      tokens: [{ id: token.id, spentUsdCents: 70 }],
    });
    expect((await usage()).bytes).toBe(0);
    for (const invalid of ["2026-13", "2026", "now", "1999-12"]) {
      const fields = [{ message: "must be a month such as 2026-11, from 2000-01" }];
      expect(await owner.get(`/usage?month=${invalid}`)).toMatchObject({
        status: 400,
        body: { fields },
      });
    }
  });

  test("of a token that was replaced counts for the budget of its successor", async () => {
    owner = await api.owner();
    const token = await mintToken(owner);
    await use(token.id, 1e9, 0);
    const { body: next } = await owner.post<{ id: string }>(`/tokens/${token.nonce}/rotate`);
    const { tokens } = await usage();
    const rows = Object.fromEntries(tokens.map((row) => [row.id, row]));
    expect(rows[next.id]).toMatchObject({ bytes: 0, costUsdCents: 0, spentUsdCents: 10 });
    expect(rows[token.id]).toMatchObject({ bytes: 1e9, costUsdCents: 10, revoked: true });
  });

  test("never includes other organizations", async () => {
    owner = await api.owner();
    expect(await usage()).toMatchObject({ bytes: 0, requests: 0, costUsdCents: 0, tokens: [] });
  });
});
