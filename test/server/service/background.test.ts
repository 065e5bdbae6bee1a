import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  mintToken,
  newEmail,
  PASSWORD,
  startApi,
  waitUntil,
  type TestApi,
} from "../../harness/server/api.ts";

/**
 * Runs the job until these messages are delivered: the server also runs it by itself once a minute, and may be delivering now,
 * or wait for the next attempt. Other tests use the same server, and their messages may stay.
 */
async function deliver(api: TestApi, ids: string[]): Promise<void> {
  await waitUntil(async () => {
    await api.sql("update outbox set next_attempt_at = now() where id = any($1)", [ids]);
    await api.runCron();
    return (await api.sql("select 1 from outbox where id = any($1)", [ids])).length === 0;
  });
}

describe("the scheduled job", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.stop());

  test("expires tunnels: the agent is notified, the name is free, the status is expired", async () => {
    const owner = await api.owner();
    const { wireBytes } = await mintToken(owner);
    const agent = await api.connectAgent(wireBytes, { port: 1, subdomain: "over", ttl: 600 });
    const closed = new Promise<number>((resolve) => agent.socket?.once("close", resolve));
    await api.sql("update tunnels set expires_at = now() where subdomain = 'over'");
    await api.runCron();

    expect(await closed).toBe(CLOSE.tunnel_expired);
    const { body } = await owner.get<Tunnel[]>("/tunnels");
    expect(body[0]).toMatchObject({ status: "expired", agentConnected: false });
    expect((await owner.post("/tunnels", { localPort: 1, subdomain: "over" })).status).toBe(201);
  });

  test("an agent that reconnects after its tunnel has expired gets a new one, with or without the job", async () => {
    const owner = await api.owner();
    const { body: expired } = await owner.post<Tunnel>("/tunnels", {
      localPort: 1,
      subdomain: "renew",
    });
    await api.sql("update tunnels set expires_at = now() where subdomain = 'renew'");
    const { wireBytes } = await mintToken(owner);
    const agent = await api.connectAgent(wireBytes, { port: 1, subdomain: "renew" });
    expect(agent.code).toBeUndefined();
    const { body } = await owner.get<Tunnel[]>("/tunnels");
    expect(body.map(({ id, status }) => [id === expired.id, status])).toEqual([
      [false, "active"],
      [true, "expired"],
    ]);
    agent.socket?.close();
  });

  test("deletes sign-ups that were not verified, and codes that were not used", async () => {
    const email = newEmail();
    await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
    await api.anonymous.post("/auth/cli/start", { label: "forgotten" });
    await api.sql("update users set created_at = now() - interval '8 days' where email = $1", [
      email,
    ]);
    await api.sql("update email_codes set expires_at = now() - interval '61 minutes'");
    await api.sql("update device_codes set expires_at = now() - interval '1 second'");
    await api.runCron();
    expect(await api.sql("select 1 from users where email = $1", [email])).toEqual([]);
    expect(await api.sql("select 1 from device_codes")).toEqual([]);
  });

  test("delivers messages that a killed server could not deliver, so that the name becomes free", async () => {
    const owner = await api.owner();
    const { body } = await owner.post<Tunnel>("/tunnels", {
      localPort: 1,
      subdomain: "undelivered",
    });
    const payload = JSON.stringify({ tunnelId: body.id });
    const rows = await api.sql<{ id: string }>(
      "insert into outbox (kind, payload) values ('tunnel_retired', $1::jsonb), ('hostname', $2::jsonb) returning id",
      [payload, JSON.stringify({ host: "undelivered", tunnelId: null, version: 99 })],
    );
    await deliver(
      api,
      rows.map(({ id }) => id),
    );
    const { wireBytes } = await mintToken(owner);
    const agent = await api.connectAgent(wireBytes, { port: 1, subdomain: "undelivered" });
    expect(agent.code).toBe(CLOSE.tunnel_deleted);
  });
});
