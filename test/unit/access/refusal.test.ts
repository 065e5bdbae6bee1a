/** A refusal on its way from a tunnel's object to the edge. */
import { expect, test } from "vitest";
import { getRefusalCode, getRefusalMessage, toRefusalResponse } from "../../../access/refusal.ts";

test("has its message in no body: workerd would hold the whole request if the edge read one", () => {
  const refusal = toRefusalResponse({ code: "maintenance", message: "back soon" });
  expect(refusal.body).toBeNull();
  expect(getRefusalCode(refusal)).toBe("maintenance");
});

test.each(["back at <noon> – été 🌅\r\nx: y", "100%", "\ud800 alone", ""])(
  "passes the message %j",
  (message) => {
    const refusal = toRefusalResponse({ code: "maintenance", message });
    expect(getRefusalMessage(refusal) ?? "").toBe(message.toWellFormed());
  },
);
