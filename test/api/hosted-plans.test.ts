/** What a plan grants on the hosted service alone. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { newEmail, PASSWORD } from "../harness/api.ts";
import { startHosted, type HostedService } from "../harness/hosted.ts";

let service: HostedService;
let accessToken: string;

async function post(path: string, body: object): Promise<{ status: number; body: unknown }> {
  const reply = await fetch(service.url + path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "cf-connecting-ip": "192.0.2.1",
      authorization: `Bearer ${accessToken}`,
    },
    body: JSON.stringify(body),
  });
  return { status: reply.status, body: await reply.json() };
}

beforeAll(async () => {
  service = await startHosted({ settings: { DEFAULT_PLAN: "free" } });
  const email = newEmail();
  await post("/auth/signup", { email, password: PASSWORD });
  await service.sql("update users set email_verified_at = now()");
  const { body } = await post("/auth/login", { email, password: PASSWORD });
  accessToken = (body as { access_token: string }).access_token;
});
afterAll(() => service[Symbol.asyncDispose]());

test.each([
  ["free", 402],
  ["pro", 200],
  ["team", 200],
  ["enterprise", 200],
])("on %s, asking for a master key is answered with %d", async (plan, status) => {
  await service.sql("update organizations set plan = $1", [plan]);
  const reply = await post("/tokens/master", { name: "ci" });
  expect(reply.status).toBe(status);
  if (status === 402) expect(reply.body).toMatchObject({ error: "upgrade_required" });
});
