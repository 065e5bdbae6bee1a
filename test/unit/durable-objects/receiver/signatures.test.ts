/** Signatures as vendors document them, and signatures that must be refused. */
import { createHmac } from "node:crypto";
import Stripe from "stripe";
import { expect, test } from "vitest";
import { importSecret, isSignatureValid } from "../../../../durable-objects/receiver/signatures.ts";
import type { Validator } from "../../../../protocol/schemas/webhooks.ts";

const bytes = (text: string) => new Uint8Array(new TextEncoder().encode(text));
const hmac = (secret: string, text: string) =>
  createHmac("sha256", secret).update(text).digest("hex");

async function accepts(
  validator: Validator,
  secrets: string | string[],
  headers: Record<string, string>,
  body: string | Uint8Array<ArrayBuffer>,
  nowSeconds = 0,
): Promise<boolean> {
  const keys = await Promise.all([secrets].flat().map(importSecret));
  const signed = {
    headers: new Headers(headers),
    body: typeof body === "string" ? bytes(body) : body,
  };
  return isSignatureValid(validator, keys, signed, nowSeconds * 1000);
}

const GITHUB = {
  secret: "It's a Secret to Everybody",
  body: "Hello, World!",
  signature: "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
};
const SLACK = {
  secret: "8f742231b10e8888abcd99yyyzzz85a5",
  time: 1531420618,
  body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
  signature: "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
};
const slackHeaders = (time = SLACK.time, signature = SLACK.signature) => ({
  "X-Slack-Request-Timestamp": String(time),
  "X-Slack-Signature": signature,
});

test("the example of GitHub's documentation is accepted", async () => {
  const headers = { "X-Hub-Signature-256": GITHUB.signature };
  expect(await accepts("code_host", GITHUB.secret, headers, GITHUB.body)).toBe(true);
});

test("the example of Slack's documentation is accepted", async () => {
  expect(await accepts("chat_app", SLACK.secret, slackHeaders(), SLACK.body, SLACK.time)).toBe(
    true,
  );
});

test("a signature by Stripe's own library is accepted", async () => {
  const payload = JSON.stringify({ id: "evt_1", text: "Grüße ✓" }, null, 2);
  const header = (timestamp: number) =>
    Stripe.webhooks.generateTestHeaderString({ payload, secret: "whsec_test", timestamp });
  const signed = (now: number) =>
    accepts("payments", "whsec_test", { "Stripe-Signature": header(1700000000) }, payload, now);
  expect(await signed(1700000000)).toBe(true);
  expect(await signed(1700000299)).toBe(true);
  expect(await signed(1700000301)).toBe(false);
  const known = Stripe.webhooks.generateTestHeaderString({
    payload: '{"id":"evt_1"}',
    secret: "whsec_test",
    timestamp: 1700000000,
  });
  expect(known).toContain("v1=c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925");
});

test("any change of the body, the signature or the secret is refused", async () => {
  const headers = { "X-Hub-Signature-256": GITHUB.signature };
  const flipped = GITHUB.signature.replace(/.$/, "6");
  for (const [secret, signature, body] of [
    [GITHUB.secret, GITHUB.signature, "Hello, World?"],
    [GITHUB.secret, GITHUB.signature, "Hello, World! "],
    [GITHUB.secret, GITHUB.signature, ""],
    [GITHUB.secret, flipped, GITHUB.body],
    [GITHUB.secret, GITHUB.signature.slice(0, -2), GITHUB.body],
    [GITHUB.secret, "", GITHUB.body],
    [GITHUB.secret, "sha256=", GITHUB.body],
    [GITHUB.secret, GITHUB.signature.replace("sha256", "sha1"), GITHUB.body],
    [`${GITHUB.secret}.`, GITHUB.signature, GITHUB.body],
  ] as const) {
    const shown = { "X-Hub-Signature-256": signature };
    expect([signature, body, await accepts("code_host", secret, shown, body)]).toEqual([
      signature,
      body,
      false,
    ]);
  }
  expect(await accepts("code_host", GITHUB.secret, {}, GITHUB.body)).toBe(false);
  expect(await accepts("code_host", [], headers, GITHUB.body)).toBe(false);
});

test("a signature covers the exact bytes", async () => {
  const body = Uint8Array.from({ length: 256 }, (_, at) => at);
  const signature = createHmac("sha256", "s").update(body).digest("hex");
  const headers = { "X-Signature-256": `sha256=${signature}` };
  expect(await accepts("generic_hmac_sha256", "s", headers, body)).toBe(true);
  const json = '{ "b": 1,  "a": 1.0 }';
  const ofJson = { "X-Signature-256": `sha256=${hmac("s", json)}` };
  expect(await accepts("generic_hmac_sha256", "s", ofJson, json)).toBe(true);
  const rewritten = JSON.stringify(JSON.parse(json));
  expect(await accepts("generic_hmac_sha256", "s", ofJson, rewritten)).toBe(false);
});

test("hexadecimal digits may be in upper or lower case", async () => {
  const headers = {
    "X-Hub-Signature-256": GITHUB.signature.replace(/[a-f0-9]{64}/, (hex) => hex.toUpperCase()),
  };
  expect(await accepts("code_host", GITHUB.secret, headers, GITHUB.body)).toBe(true);
});

test.each([
  [-301, false],
  [-300, true],
  [0, true],
  [299, true],
  [300, true],
  [301, false],
])("a timestamp that is %i seconds away is accepted: %s", async (seconds, isAccepted) => {
  const now = SLACK.time + seconds;
  expect(await accepts("chat_app", SLACK.secret, slackHeaders(), SLACK.body, now)).toBe(isAccepted);
  const line = `t=${SLACK.time},v1=${hmac("s", `${SLACK.time}.{}`)}`;
  expect(await accepts("payments", "s", { "Stripe-Signature": line }, "{}", now)).toBe(isAccepted);
});

test("a signature is valid only for its own timestamp", async () => {
  const later = slackHeaders(SLACK.time + 1);
  expect(await accepts("chat_app", SLACK.secret, later, SLACK.body, SLACK.time)).toBe(false);
  for (const time of ["", "-1", "1e9", "0x1", " 1531420618", "NaN", "1531420618.0"]) {
    const signature = `v0=${hmac("s", `v0:${time}:{}`)}`;
    const headers = { "X-Slack-Request-Timestamp": time, "X-Slack-Signature": signature };
    // Whitespace around a header's value is removed.
    const isTime = time.trim() === String(SLACK.time) && time === time.trim();
    expect([time, await accepts("chat_app", "s", headers, "{}", SLACK.time)]).toEqual([
      time,
      isTime,
    ]);
  }
});

test("one of several signatures must be valid, and other schemes are ignored", async () => {
  const now = 1700000000;
  const right = hmac("new", `${now}.{}`);
  const wrong = hmac("other", `${now}.{}`);
  const line = (...parts: string[]) => ({ "Stripe-Signature": [`t=${now}`, ...parts].join(",") });
  for (const [headers, isAccepted] of [
    [line(`v1=${wrong}`, `v1=${right}`), true],
    [line(`v0=${wrong}`, `v1=${right}`), true],
    [line(`v1=${right}`, `v9=whatever`), true],
    [line(`v1=${right}`, `t=${now}`), false],
    [line(`v0=${right}`), false],
    [line(`v1=${wrong}`, `v1=${wrong}`), false],
    [line(...Array.from({ length: 20 }, () => `v1=${wrong}`), `v1=${right}`), false],
    [line(), false],
    [{ "Stripe-Signature": `v1=${right}` }, false],
  ] as const) {
    expect([headers, await accepts("payments", "new", headers, "{}", now)]).toEqual([
      headers,
      isAccepted,
    ]);
  }
});

test("during a rotation a signature by either secret is accepted", async () => {
  const headers = { "X-Hub-Signature-256": `sha256=${hmac("old", "{}")}` };
  expect(await accepts("code_host", ["new", "old"], headers, "{}")).toBe(true);
  expect(await accepts("code_host", ["new"], headers, "{}")).toBe(false);
});
