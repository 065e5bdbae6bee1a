import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { readChallenge, readDeliveryId } from "../../../../durable-objects/receiver/payload.ts";
import type { Validator } from "../../../../protocol/schemas/webhooks.ts";

const signed = (body: string, headers: Record<string, string> = {}) => ({
  headers: new Headers(headers),
  body: new Uint8Array(new TextEncoder().encode(body)),
});

test.each([
  ["code_host", "{}", { "X-GitHub-Delivery": "g-1" }, "g-1"],
  ["code_host", '{"id":"evt"}', {}, null],
  ["code_host", "{}", { "X-Delivery-Id": "d-1" }, "d-1"],
  ["chat_app", '{"event_id":"Ev1","id":"x"}', {}, "Ev1"],
  ["chat_app", '{"id":"x"}', {}, "x"],
  ["chat_app", "token=1&text=", {}, null],
  ["payments", '{"id":"evt_1"}', {}, "evt_1"],
  ["payments", '{"id":"evt_1"}', { "X-Delivery-Id": "d-1" }, "evt_1"],
  ["payments", '{"id":7}', {}, "7"],
  ["chat_app", '{"event_id":8,"id":"x"}', {}, "8"],
  ["payments", '{"id":12345678901234567890}', {}, null],
  ["payments", '{"id":1.5}', {}, null],
  ["payments", '{"id":""}', {}, null],
  ["payments", "null", {}, null],
  ["payments", "[1]", {}, null],
  ["payments", "{", { "X-Delivery-Id": "d-1" }, "d-1"],
  ["generic_hmac_sha256", '{"id":"evt"}', { "X-Delivery-Id": "d-1" }, "d-1"],
  ["generic_hmac_sha256", "{}", {}, null],
] as [Validator, string, Record<string, string>, string | null][])(
  "a delivery of %s, %s with %j, has the id %j",
  async (validator, body, headers, id) => {
    expect(await readDeliveryId(validator, signed(body, headers))).toBe(id);
  },
);

test("of an id with more than 200 characters, the hash is the delivery's id", async () => {
  for (const count of [200, 201, 5_000]) {
    const id = "x".repeat(count);
    const hash = createHash("sha256").update(id).digest("hex");
    const found = await readDeliveryId("payments", signed(JSON.stringify({ id })));
    expect([count, found]).toEqual([count, count === 200 ? id : `sha256:${hash}`]);
  }
});

test("a large body with more values, or more levels, than a vendor sends has no id, because parsing it takes long", async () => {
  const readId = (rest: string) => readDeliveryId("payments", signed(`{"id":"evt_1","x":${rest}}`));
  const [values, levels] = [20_000, 40_000];
  const list = (count: number) =>
    `[${Array(count)
      .fill(`"${"x".repeat(10)}"`)
      .join(",")}]`;
  const nested = "[".repeat(levels) + "]".repeat(levels);
  expect(await Promise.all([readId(list(values / 4)), readId(`"${"x".repeat(500_000)}"`)])).toEqual(
    ["evt_1", "evt_1"],
  );
  expect(await Promise.all([readId(list(values)), readId(nested)])).toEqual([null, null]);
  const challenge = `{"type":"url_verification","challenge":"c","x":${nested}}`;
  expect(readChallenge("chat_app", signed(challenge))).toBeNull();
});

test("only a chat app's address verification has a challenge", () => {
  const verification = '{"type":"url_verification","challenge":"c-1","token":"t"}';
  expect(readChallenge("chat_app", signed(verification))).toBe("c-1");
  expect(readChallenge("payments", signed(verification))).toBeNull();
  expect(readChallenge("chat_app", signed('{"type":"url_verification"}'))).toBeNull();
  expect(readChallenge("chat_app", signed('{"type":"event_callback","challenge":"c"}'))).toBeNull();
  expect(readChallenge("chat_app", signed("not json"))).toBeNull();
});
