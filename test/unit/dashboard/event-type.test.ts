/** The types of events that the list of deliveries shows. */
import { expect, test } from "vitest";
import type { Validator } from "../../../protocol/schemas/webhooks.ts";
import { readEventType } from "../../../dashboard/pages/receivers/deliveries/event-type.ts";

const read = (
  validator: Validator,
  body: object | string,
  headers: Record<string, string> = {},
): string | null => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return readEventType(validator, { headers, body: Buffer.from(text).toString("base64") });
};

test("each vendor's deliveries have the type that the vendor gives them", () => {
  const github = { "x-github-event": "pull_request" };
  expect(read("code_host", { action: "opened" }, github)).toBe("pull_request.opened");
  expect(read("code_host", "payload=%7B%7D", github)).toBe("pull_request");
  expect(read("payments", { id: "evt_1", type: "charge.refunded" })).toBe("charge.refunded");
  const mention = { type: "event_callback", event: { type: "app_mention" } };
  expect(read("chat_app", mention)).toBe("app_mention");
  expect(read("chat_app", "command=%2Fdeploy&text=web")).toBe("/deploy");
  const dialog = new URLSearchParams({ payload: '{"type":"view_submission"}' });
  expect(read("chat_app", dialog.toString())).toBe("view_submission");
});

test("a generic delivery has the type of a known header, or else of its body", () => {
  const body = { event: "job.finished" };
  expect(read("generic_hmac_sha256", body, { "ce-type": "com.example.job" })).toBe(
    "com.example.job",
  );
  expect(read("generic_hmac_sha256", body)).toBe("job.finished");
});

test("a delivery without a type that fits in a row has none", () => {
  for (const body of ["", "null", "[]", "not JSON", { type: 7 }, { type: "x".repeat(101) }]) {
    expect([body, read("payments", body)]).toEqual([body, null]);
  }
  expect(read("code_host", { action: "opened" })).toBeNull();
});
