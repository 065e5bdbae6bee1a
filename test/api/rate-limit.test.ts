import { expect, test } from "vitest";
import { startApi } from "../harness/api.ts";

const LOGIN = { email: "nobody@example.com", password: "does not matter" };

test("one address may try five times at once on /auth, and forged headers do not help", async () => {
  await using api = await startApi({ env: { AUTH_RATE_LIMIT: "on" } });
  const attempt = (headers: Record<string, string> = {}) =>
    api.stranger.send<{ error: string; retry_after_seconds: number }>("POST", "/auth/login", {
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(LOGIN),
    });
  for (let tries = 0; tries < 5; tries++) expect((await attempt()).status).toBe(401);

  const forgeries: Record<string, string>[] = [
    {},
    { "x-forwarded-for": "192.0.2.1" },
    { "cf-connecting-ip": "192.0.2.1" },
    { "x-real-ip": "192.0.2.1" },
    { forwarded: "for=192.0.2.1" },
  ];
  for (const forged of forgeries) {
    const { status, body, headers } = await attempt(forged);
    expect([status, body.error]).toEqual([429, "rate_limited"]);
    expect(body.retry_after_seconds).toBeGreaterThanOrEqual(10);
    expect(body.retry_after_seconds).toBeLessThanOrEqual(12);
    expect(headers.get("retry-after")).toBe(String(body.retry_after_seconds));
  }
  expect((await api.stranger.post("/setup", { code: "guess" })).status).toBe(429);
  // A machine that waits for approval has a pace of its own.
  expect((await api.stranger.post("/auth/cli/poll", { device_code: "x" })).status).toBe(410);
});

test("behind a proxy of one's own the last entry that it added is the address", async () => {
  await using api = await startApi({ env: { AUTH_RATE_LIMIT: "on", TRUST_PROXY: "true" } });
  const attempt = async (forwarded: string) => {
    const { status } = await api.stranger.send("POST", "/auth/login", {
      headers: { "content-type": "application/json", "x-forwarded-for": forwarded },
      body: JSON.stringify(LOGIN),
    });
    return status;
  };
  for (let tries = 0; tries < 5; tries++)
    expect(await attempt(`10.0.0.${tries}, 192.0.2.1`)).toBe(401);
  expect(await attempt("10.0.0.9, 192.0.2.1")).toBe(429);
  expect(await attempt("192.0.2.2")).toBe(401);
});
