/**
 * The agent's command when its tunnel is stopped, started, deleted, or expires. Its clock is sped up while it waits to
 * connect again, for four to six seconds.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { fastClock, speedUp } from "../../harness/preloads/fast-clock.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";

let api: TestApi;
let owner: Person;
let origin: RawOrigin;
let token: Buffer;

beforeAll(async () => {
  [api, origin] = await Promise.all([startApi(), startRawOrigin()]);
  owner = await api.owner();
  token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
});
afterAll(async () => {
  await api.stop();
  await origin.stop();
});

const share = (...more: string[]) =>
  runAgent(
    ["http", String(origin.port), "--server", api.server.url, "--token-file", "TOKEN", ...more],
    { token, env: fastClock(20) },
  );
const visit = (subdomain: string) =>
  exchange(api.server.port, `GET / HTTP/1.1\r\nHost: ${subdomain}.localhost\r\n\r\n`);

test("it reports that the tunnel was stopped, waits, and serves again when it is started", async () => {
  await using agent = await share("--subdomain", "paused", "--json");
  const { tunnelId } = await agent.event("ready");
  await owner.post(`/tunnels/${String(tunnelId)}/stop`);
  expect(await agent.event("disconnected")).toEqual({
    event: "disconnected",
    reason: "tunnel_stopped: the tunnel was stopped",
  });
  const { status, headers } = await visit("paused");
  expect([status, headers.find(([name]) => name === "underpass-error")?.[1]]).toEqual([
    502,
    "agent_offline",
  ]);
  await owner.post(`/tunnels/${String(tunnelId)}/start`);
  speedUp(agent.child);
  await agent.event("reconnected");
  expect((await visit("paused")).status).toBe(200);
});

test("it waits for a tunnel that is already stopped, and prints the command that starts it", async () => {
  const { body } = await owner.post<{ id: string }>("/tunnels", {
    localPort: 1,
    subdomain: "not-yet",
  });
  await owner.post(`/tunnels/${body.id}/stop`);
  await using agent = await share("--subdomain", "not-yet");
  await waitUntil(() =>
    Promise.resolve(
      agent.stdout.includes(
        "the tunnel was stopped; waiting until you run: underpass tunnels start not-yet\n",
      ),
    ),
  );
  await owner.post(`/tunnels/${body.id}/start`);
  speedUp(agent.child);
  await waitUntil(() => Promise.resolve(agent.stdout.includes("Forwarding http://not-yet.")));
});

test("it exits with 1 when the stopped tunnel is deleted, and creates no new one", async () => {
  await using agent = await share("--subdomain", "given-up", "--json");
  const { tunnelId } = await agent.event("ready");
  await owner.post(`/tunnels/${String(tunnelId)}/stop`);
  await agent.event("disconnected");
  await owner.delete(`/tunnels/${String(tunnelId)}`);
  speedUp(agent.child);
  expect(await agent.exit).toBe(1);
  expect(await agent.event("rejected")).toMatchObject({ reason: "tunnel_deleted" });
  expect((await visit("given-up")).status).toBe(404);
});

test("it tells when the tunnel expires, which a later run without --ttl does not change", async () => {
  let expiresAt: unknown;
  {
    await using first = await share("--subdomain", "expiring", "--ttl", "10m", "--json");
    const { tunnelId, ...ready } = await first.event("ready");
    ({ expiresAt } = ready);
    const { body } = await owner.get<Tunnel[]>("/tunnels");
    expect(body.find(({ id }) => id === tunnelId)?.expiresAt).toBe(expiresAt);
  }
  await using second = await share("--subdomain", "expiring", "--json");
  expect(await second.event("ready")).toMatchObject({ expiresAt });
  await using third = await share("--subdomain", "expiring");
  await waitUntil(() =>
    Promise.resolve(/ The tunnel expires in (?:10|9) min$/m.test(third.stdout)),
  );
});

test("it tells why the tunnel expires before the time of --ttl: the tunnel existed, or the plan or the service allows no more", async () => {
  await owner.post("/tunnels", { localPort: 1, subdomain: "longer", ttlSeconds: 600 });
  await using agent = await share("--subdomain", "longer", "--ttl", "3h", "--json");
  expect((await agent.event("notice"))["message"]).toMatch(
    /^the tunnel expires in (?:10|9) min, because it existed before, and --ttl does not extend it$/,
  );
  await using unlimited = await share("--ttl", "500d", "--json");
  expect((await unlimited.event("notice"))["message"]).toMatch(
    /^the tunnel expires in 366 days, the longest time that the service allows$/,
  );
  const free = await api.owner();
  await api.sql("update organizations set plan = 'free' where id = $1", [free.orgId]);
  const args = ["http", String(origin.port), "--server", api.server.url, "--token-file", "TOKEN"];
  await using limited = await runAgent([...args, "--ttl", "2h", "--json"], {
    token: Buffer.from((await mintToken(free)).wireBytes, "base64"),
  });
  expect((await limited.event("notice"))["message"]).toMatch(
    /^the tunnel expires in (?:60|59) min, the longest time that your plan allows$/,
  );
});

test("it ends with 1 when the tunnel has expired, with a sentence for a person", async () => {
  await using agent = await share("--subdomain", "brief");
  await waitUntil(() => Promise.resolve(agent.stdout.includes("Forwarding http://brief.")));
  const [tunnel] = await api.sql<{ id: string }>(
    "update tunnels set expires_at = now() where subdomain = 'brief' returning id",
  );
  speedUp(agent.child);
  // Ends the connection, and the agent tries to connect again.
  await owner.post(`/tunnels/${tunnel!.id}/stop`);
  expect(await agent.exit).toBe(1);
  expect(agent.stderr).toBe(
    "underpass: tunnel_expired: the tunnel has expired\n" +
      "Run the command again to make a new tunnel. Its --ttl, or else the plan, decides when it expires.\n",
  );
  expect((await visit("brief")).status).toBe(404);
});

test("it ends with 1 when another agent takes the name over, and says how both can serve it", async () => {
  await using first = await share("--subdomain", "replaced-agent");
  await waitUntil(() =>
    Promise.resolve(first.stdout.includes("Forwarding http://replaced-agent.")),
  );
  await using _second = await share("--subdomain", "replaced-agent");
  expect(await first.exit).toBe(1);
  expect(first.stderr).toBe(
    "underpass: replaced: a newer agent with the same token took over\n" +
      "Only one agent serves a tunnel at a time. Agents that share an HTTP tunnel need --pool.\n",
  );
});
