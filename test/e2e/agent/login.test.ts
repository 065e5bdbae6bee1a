/** `underpass login` against a real server. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { startApi, waitUntil, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

test("a machine gets its token in the poll that waits for the approval", async () => {
  const owner = await api.owner();
  const server = ["--server", api.server.url];
  await using agent = await runAgent(["login", ...server, "--label", "a machine that logs in"]);
  const code = await waitUntil(() =>
    Promise.resolve(/shows? the code ([A-Z]{4}-[A-Z]{4})/.exec(agent.stdout)?.[1]),
  );
  await waitUntil(async () => {
    const rows = await api.sql(
      "select 1 from device_codes where label = 'a machine that logs in' and last_polled_at is not null",
    );
    return rows.length > 0;
  });
  expect((await owner.post("/auth/cli/authorize", { device_code: code })).status).toBe(200);
  expect([await agent.exit, agent.stderr]).toEqual([0, ""]);
  expect(agent.stdout).toContain("This machine can now open tunnels.");
  expect(await api.sql("select 1 from tokens where name = 'a machine that logs in'")).toHaveLength(
    1,
  );
});

test("a setup code of a server that has an owner is refused with the way to log in", async () => {
  const { userId } = await api.owner();
  const setSuperadmin = (isSuperadmin: boolean) =>
    api.sql("update users set is_superadmin = $2 where id = $1", [userId, isSuperadmin]);
  await setSuperadmin(true);
  const server = ["--server", api.server.url];
  await using agent = await runAgent(["login", "--setup", "USED", "--email", "a@b.c", ...server]);
  expect(await agent.exit).toBe(1);
  await setSuperadmin(false);
  expect(agent.stderr).toMatch(/has an owner already.*underpass login/);
});
