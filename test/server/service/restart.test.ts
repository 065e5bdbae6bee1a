/** What a stop of the server ends, and what is preserved until the next start. */
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import type { DeliveryPage } from "../../../protocol/schemas/webhooks.ts";
import { createPreparedDir } from "../../harness/directories.ts";
import { createReceiver } from "../../harness/fakes/vendor.ts";
import {
  createCaller,
  mintToken,
  newAddress,
  newEmail,
  PASSWORD,
  startApi,
  waitUntil,
  type Reply,
  type TestApi,
} from "../../harness/server/api.ts";

const LIMITS = { AUTH_RATE_LIMIT: "on", TRUST_PROXY: "true" };
const BURST = 5;

let dataDir: string;
/** Sends requests from its address, until the limit refuses them. */
const spender = newAddress();
/** Signed up while the mail server was down. */
const signedUp = newEmail();
/** A token whose tunnel `lasting` was stopped. */
let wireBytes: string;
let burstAfterRestart: number[];
/** The answer to a request for events that waited when the server stopped. */
let page: Reply<DeliveryPage>;
let api: TestApi;

beforeAll(async () => {
  dataDir = await createPreparedDir();
  {
    // No mail server listens on port 1.
    const env = { ...LIMITS, SMTP_URL: "smtp://127.0.0.1:1" };
    await using before = await startApi({ dataDir, env });
    const owner = await before.owner();
    ({ wireBytes } = await mintToken(owner));
    const agent = await before.connectAgent(wireBytes, { port: 1, subdomain: "lasting" });
    expect(agent.code).toBeUndefined();
    const { body: tunnels } = await owner.get<Tunnel[]>("/tunnels");
    await owner.post(`/tunnels/${tunnels[0]?.id}/stop`);

    const reply = await callFrom(before, newAddress()).post("/auth/signup", {
      email: signedUp,
      password: PASSWORD,
    });
    expect(reply.status).toBe(201);
    await waitUntil(() => Promise.resolve(before.server.output.includes("delivery_failed")));
    const [row] = await before.sql<{ kind: string; payload: object }>("select * from outbox");
    expect(row?.kind).toBe("mail");
    expect(JSON.stringify(row)).not.toContain(signedUp);

    expect(await spendBurst(before)).toContain(200);
    expect(await spendBurst(before)).toContain(429);

    const { id } = await createReceiver(owner);
    const waiting = owner.get<DeliveryPage>(`/webhook-receivers/${id}/events?wait=30`);
    // A later request has been answered, so the reader is waiting.
    await owner.get(`/webhook-receivers/${id}`);
    expect(await before.server.stop()).toBe(0);
    page = await waiting;
  }
  api = await startApi({ dataDir, env: LIMITS });
  burstAfterRestart = await spendBurst(api);
});
afterAll(async () => {
  await api.stop();
  await rm(dataDir, { recursive: true, force: true });
});

function callFrom({ server }: TestApi, address: string) {
  return createCaller(server, { "x-forwarded-for": address });
}

/** Sends a burst of requests that cost the server little. */
function spendBurst(to: TestApi): Promise<number[]> {
  const ask = callFrom(to, spender);
  const email = "unknown@example.com";
  return Promise.all(
    Array.from({ length: BURST }, async () => {
      return (await ask.post("/auth/resend-verify-otp", { email })).status;
    }),
  );
}

test("a reader who waits for events is answered when the server stops", () => {
  expect([200, 503]).toContain(page.status);
  if (page.status === 200) expect(page.body.events).toEqual([]);
});

test("a stopped tunnel remains stopped", async () => {
  const agent = await api.connectAgent(wireBytes, { port: 1, subdomain: "lasting" });
  expect(agent).toMatchObject({ code: CLOSE.tunnel_stopped });
});

test("a limit by address does not start again", () => {
  // One request is accepted again every 12 seconds: five take longer than a start.
  expect(burstAfterRestart).toContain(429);
});

test("an email that could not be sent is delivered", async () => {
  await api.sql("update outbox set next_attempt_at = now()");
  await api.runCron();
  const code = await api.getMailedCode(signedUp);
  const confirmation = { email: signedUp, code };
  const ask = callFrom(api, newAddress());
  expect((await ask.post("/auth/verify-email-otp", confirmation)).status).toBe(200);
  await waitUntil(async () => (await api.sql("select 1 from outbox")).length === 0);
});
