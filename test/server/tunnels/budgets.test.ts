import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { MintedToken, Token } from "../../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  getSocket,
  mintToken,
  startApi,
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

type Named = Pick<Token, "nonce">;
const setBudget = (by: Person, { nonce }: Named, monthlyBudgetUsdCents: unknown) =>
  by.put<{ error: string }>(`/tokens/${nonce}/budget`, { monthlyBudgetUsdCents });
const find = async ({ nonce }: Named) =>
  (await owner.get<Token[]>("/tokens")).body.find((token) => token.nonce === nonce)!;
const connect = (token: MintedToken, subdomain: string) =>
  api.connectAgent(token.wireBytes, { port: 1, subdomain });

/** Stores traffic of a token's agents, in this month or an earlier one. */
async function spend({ id }: Pick<Token, "id">, gigabytes: number, monthsAgo = 0): Promise<void> {
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  await api.sql(
    `insert into token_usage select $1, to_char(now() at time zone 'utc' - $2 * interval '1 month',
      'YYYY-MM'), $3, $4, 0`,
    [id, monthsAgo, tunnel.id, gigabytes * 1e9],
  );
}

describe("a budget", () => {
  test.each([0, 1, 1_000_000_000, null])("accepts %j", async (cents) => {
    const token = await mintToken(owner);
    expect(await setBudget(owner, token, cents)).toMatchObject({
      status: 200,
      body: { success: true, monthlyBudgetUsdCents: cents },
    });
    expect((await find(token)).monthlyBudgetUsdCents).toBe(cents);
  });

  test.each([-1, 1_000_000_001, 0.5, "5", true, {}, undefined])("refuses %j", async (cents) => {
    const token = await mintToken(owner);
    expect(await setBudget(owner, token, cents)).toMatchObject({
      status: 400,
      body: { error: "invalid_budget", fields: [{ path: "monthlyBudgetUsdCents" }] },
    });
    expect((await find(token)).monthlyBudgetUsdCents).toBeNull();
  });

  test("can be set by admins and owners, for any token", async () => {
    const member = await api.colleague(owner, "member");
    const admin = await api.colleague(owner, "admin");
    const own = await mintToken(member);
    expect((await setBudget(member, own, 5)).status).toBe(403);
    expect((await setBudget(admin, own, 5)).status).toBe(200);
    expect((await setBudget(await api.owner(), own, 5)).status).toBe(404);
  });

  test("leaves an event with its value", async () => {
    const token = await mintToken(owner);
    await setBudget(owner, token, 7);
    const events = await api.sql(
      "select metadata from audit_events where action = 'token_budget_set' and resource_id = $1",
      [token.id],
    );
    const { nonce } = token;
    expect(events).toEqual([{ metadata: { nonce, monthlyBudgetUsdCents: 7 } }]);
  });

  test("is not set for a token that was rotated in the meantime: it would bound nothing", async () => {
    const token = await mintToken(owner);
    const path = `/tokens/${token.nonce}/rotate`;
    const { body: renewed } = await owner.post<MintedToken>(path);
    expect(await setBudget(owner, token, 5)).toMatchObject({
      status: 404,
      body: { error: "not_found" },
    });
    expect((await find(renewed)).monthlyBudgetUsdCents).toBeNull();
    expect((await setBudget(owner, renewed, 5)).status).toBe(200);
  });
});

describe("the budget of an organization", () => {
  type Cents = number | null;
  const setFor = (person: Person, monthlyBudgetUsdCents: unknown, by = person) =>
    by.put(`/orgs/${person.orgId}/budget`, { monthlyBudgetUsdCents });
  const readBudget = async (person: Person) =>
    (await person.get<{ monthly_budget_usd_cents: Cents }>(`/orgs/${person.orgId}`)).body
      .monthly_budget_usd_cents;
  const serve = async (person: Person) =>
    api.connectAgent((await mintToken(person)).wireBytes, { port: 1 });

  test("applies to tokens that are minted later, and a token's own budget cannot lift it", async () => {
    const person = await api.owner();
    expect(await readBudget(person)).toBeNull();
    expect(await setFor(person, 0)).toMatchObject({
      status: 200,
      body: { success: true, monthlyBudgetUsdCents: 0 },
    });
    expect(await readBudget(person)).toBe(0);
    const token = await mintToken(person);
    await setBudget(person, token, 1_000);
    const refusal = { code: CLOSE.BUDGET_EXCEEDED };
    expect(await connect(token, "org-budget")).toMatchObject(refusal);
    expect((await setFor(person, null)).status).toBe(200);
    expect((await connect(token, "org-budget")).code).toBeUndefined();
    await setBudget(person, token, 0);
    expect(await connect(token, "org-budget")).toMatchObject(refusal);
  });

  test("counts the traffic of all tokens together, revoked ones too, of this month only", async () => {
    const person = await api.owner();
    const tokens = [await mintToken(person), await mintToken(person)];
    await spend(tokens[0]!, 5, 0);
    await spend(tokens[1]!, 5, 0);
    await spend(tokens[1]!, 50, 1);
    await person.delete(`/tokens/${tokens[1]!.nonce}`);
    await setFor(person, 101);
    expect((await serve(person)).code).toBeUndefined();
    await setFor(person, 100);
    expect((await serve(person)).code).toBe(CLOSE.BUDGET_EXCEEDED);
  });

  test("disconnects the agents of all tokens when it is set too low, and of no other organization", async () => {
    const [person, other] = [await api.owner(), await api.owner()];
    const agents = [getSocket(await serve(person)), getSocket(await serve(person))];
    const unaffected = getSocket(await serve(other));
    const closed = agents.map((agent) => once(agent, "close"));
    await setFor(person, 0);
    for (const [code] of await Promise.all(closed)) expect(code).toBe(CLOSE.BUDGET_EXCEEDED);
    expect(unaffected.readyState).toBe(unaffected.OPEN);
  });

  test("can be set by admins and owners, within the range, with an event", async () => {
    const person = await api.owner();
    for (const cents of [-1, 1_000_000_001, 0.5, "5", undefined]) {
      expect(await setFor(person, cents)).toMatchObject({
        status: 400,
        body: { error: "invalid_budget" },
      });
    }
    expect((await setFor(person, 5, await api.colleague(person, "member"))).status).toBe(403);
    expect((await setFor(person, 5, await api.owner())).status).toBe(404);
    expect((await setFor(person, 5, await api.colleague(person, "admin"))).status).toBe(200);
    const events = await api.sql(
      "select metadata from audit_events where action = 'organization_budget_set' and resource_id = $1",
      [person.orgId],
    );
    expect(events).toEqual([{ metadata: { monthlyBudgetUsdCents: 5 } }]);
  });
});

describe("a token over its budget", () => {
  test("is refused with a close code, and accepted again when its budget is raised", async () => {
    const token = await mintToken(owner);
    await spend(token, 1);
    expect((await find(token)).spentUsdCents).toBe(10);
    await setBudget(owner, token, 10);
    expect(await connect(token, "spent")).toMatchObject({
      code: CLOSE.BUDGET_EXCEEDED,
      reason:
        "BUDGET_EXCEEDED: this month's budget of the token, its master key or its organization is used up",
    });
    await setBudget(owner, token, 11);
    const agent = await connect(token, "spent");
    expect(agent.code).toBeUndefined();
    agent.socket?.close();
  });

  test("is judged by the current month only", async () => {
    const token = await mintToken(owner);
    await spend(token, 100, 1);
    await setBudget(owner, token, 1);
    const agent = await connect(token, "new-month");
    expect(agent.code).toBeUndefined();
    agent.socket?.close();
  });

  test("disconnects its agents at once, also with a budget of 0", async () => {
    const [token, other] = [await mintToken(owner), await mintToken(owner)];
    const agents = [await connect(token, "over-a"), await connect(token, "over-b")];
    const unaffected = await connect(other, "under");
    const closed = agents.map((agent) => once(getSocket(agent), "close"));
    await setBudget(owner, token, 0);
    for (const [code] of await Promise.all(closed)) expect(code).toBe(CLOSE.BUDGET_EXCEEDED);
    expect(unaffected.socket?.readyState).toBe(1);
    unaffected.socket?.close();
  });

  test("disconnects all of twenty agents that connect while it is set to 0", async () => {
    const token = await mintToken(owner, { tunnelQuota: 20 });
    const connecting = Array.from({ length: 20 }, (_, n) => connect(token, `crowd-${n}`));
    await setBudget(owner, token, 0);
    const agents = await Promise.all(connecting);
    const closeCodes = agents.map(({ socket, code }) =>
      socket === undefined || socket.readyState > 1
        ? Promise.resolve(code ?? CLOSE.BUDGET_EXCEEDED)
        : once(socket, "close").then(([closedWith]) => closedWith as number),
    );
    expect(new Set(await Promise.all(closeCodes))).toEqual(new Set([CLOSE.BUDGET_EXCEEDED]));
  });
});

describe("a master key's budget", () => {
  test("covers all tokens that it minted", async () => {
    await owner.post("/projects", { slug: "capped", name: "Capped" });
    const { body: master } = await owner.post<MintedToken>("/tokens/master", { name: "ci" });
    const minter = { headers: { authorization: `Bearer ${master.bearer}` } };
    const mint = async () =>
      (
        await api.anonymous.send<MintedToken>("POST", "/projects/capped/tokens", {
          headers: { ...minter.headers, "content-type": "application/json" },
          body: JSON.stringify({ name: "job" }),
        })
      ).body;
    const [first, second] = [await mint(), await mint()];
    const agent = await connect(first, "job");
    const closed = once(getSocket(agent), "close");
    await spend(second, 1);
    expect((await find(master)).spentUsdCents).toBe(10);
    await setBudget(owner, master, 10);
    expect((await closed)[0]).toBe(CLOSE.BUDGET_EXCEEDED);
    expect((await connect(await mint(), "job")).code).toBe(CLOSE.BUDGET_EXCEEDED);
  });
});
