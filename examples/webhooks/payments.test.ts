/** A test that receives a real callback: the payment provider calls this process back over the internet. */
import { expose, type ExposedTunnel } from "underpass";
import { afterAll, beforeAll, expect, test } from "vitest";

/** The provider's API for tests. */
const API = process.env.PAYMENTS_API ?? "https://sandbox.payments.example";

let tunnel: ExposedTunnel;
const callback = Promise.withResolvers<{ order: string; status: string }>();

beforeAll(async () => {
  // To test a server instead of a function: expose({ port: 3000 }).
  tunnel = await expose({
    async fetch(request) {
      callback.resolve((await request.json()) as { order: string; status: string });
      return new Response(null, { status: 204 });
    },
  });
});
afterAll(() => tunnel?.close());

test("the provider reports a payment", async () => {
  const response = await fetch(`${API}/payments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ order: "A-1", amount: 1999, callback_url: `${tunnel.url}/paid` }),
  });
  expect(response.status).toBe(202);
  expect(await callback.promise).toEqual({ order: "A-1", status: "succeeded" });
});
