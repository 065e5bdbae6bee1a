/** A token's budget: from visitors' downloads to the agent that is disconnected. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { MintedToken, Token } from "../../../protocol/schemas/tokens.ts";
import { runAgent, type AgentOptions } from "../../harness/tunnel/agent.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { requestCounterReport } from "../../harness/tunnel/counter-report.ts";

const BODY = "x".repeat(1_000);

let api: TestApi;
let owner: Person;
let origin: RawOrigin;
let token: MintedToken;

beforeAll(async () => {
  [api, origin] = await Promise.all([startApi(), startRawOrigin()]);
  origin.respond = () => `HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;
  owner = await api.owner();
});
afterAll(async () => {
  await api.stop();
  await origin.stop();
});
beforeEach(async () => {
  token = await mintToken(owner);
});

const share = (subdomain: string, ...more: string[]) =>
  runAgent(
    [
      ...["http", String(origin.port), "--server", api.server.url],
      ...["--token-file", "TOKEN", "--subdomain", subdomain, ...more],
    ],
    { token: Buffer.from(token.wireBytes, "base64") } satisfies AgentOptions,
  );
const visit = (subdomain: string) =>
  exchange(api.server.port, `GET / HTTP/1.1\r\nHost: ${subdomain}.localhost\r\n\r\n`);
const setBudget = (cents: number) =>
  owner.put(`/tokens/${token.nonce}/budget`, { monthlyBudgetUsdCents: cents });
const usage = () =>
  api.sql<{ bytes: number; requests: number }>(
    "select bytes::int, requests::int from token_usage where token_id = $1",
    [token.id],
  );

test("visitors' traffic is charged to the token with the next report, and a late report does not lower it", async () => {
  await using agent = await share("charged", "--json");
  const { tunnelId } = await agent.event("ready");
  for (let n = 0; n < 3; n++) await visit("charged");
  await requestCounterReport(owner, String(tunnelId));
  const charged = await waitUntil(async () => (await usage())[0]?.requests === 3 && usage());
  expect(charged).toEqual([{ bytes: 3 * BODY.length, requests: 3 }]);

  await api.sql("update token_usage set bytes = 5000000000, requests = 50 where token_id = $1", [
    token.id,
  ]);
  await visit("charged");
  agent.child.kill("SIGINT");
  await agent.exit;
  const { body } = await owner.get<Token[]>("/tokens");
  expect(body.find(({ id }) => id === token.id)?.spentUsdCents).toBe(50);
});

test("an agent that exceeds it while it serves is disconnected, on all its tunnels", async () => {
  await using first = await share("over-one", "--json");
  await using second = await share("over-two", "--json");
  const [{ tunnelId }] = await Promise.all([first.event("ready"), second.event("ready")]);
  await setBudget(1);
  await visit("over-one");
  await requestCounterReport(owner, String(tunnelId));
  await waitUntil(async () => (await usage()).length > 0);
  // Stands for a month of traffic.
  await api.sql("update token_usage set requests = 1000000 where token_id = $1", [token.id]);
  await visit("over-one");
  await requestCounterReport(owner, String(tunnelId));
  for (const agent of [first, second]) {
    expect(await agent.event("rejected")).toMatchObject({ reason: "BUDGET_EXCEEDED" });
    expect(await agent.exit).toBe(1);
  }
});

test("an agent that connects over budget reports it to programs and exits with 1", async () => {
  await setBudget(0);
  await using agent = await share("refused", "--json");
  expect(await agent.exit).toBe(1);
  expect(await agent.event("rejected")).toEqual({
    event: "rejected",
    reason: "BUDGET_EXCEEDED",
    message: "this month's budget of the token, its master key or its organization is used up",
  });
});

test("a person reads what happened and who can change it", async () => {
  await setBudget(0);
  await using agent = await share("refused");
  expect(await agent.exit).toBe(1);
  expect(agent.stderr).toBe(
    "underpass: BUDGET_EXCEEDED: this month's budget of the token, its master key or its organization is used up\n" +
      "An owner or admin can raise the monthly budget.\n",
  );
});
