import { expect, test } from "vitest";
import { isEmailAddress, normalizeEmail } from "../../../../workers/identity/accounts/emails.ts";
import { parseVerifiedEmail } from "../../../../workers/identity/providers/provider.ts";

test.each([
  [" Ann@Example.COM ", "ann@example.com"],
  ["ａnn@example.com", "ann@example.com"],
  ["ann@München.example", "ann@xn--mnchen-3ya.example"],
  ["ann@xn--mnchen-3ya.example", "ann@xn--mnchen-3ya.example"],
  ["ann@例え.jp", "ann@xn--r8jz45g.jp"],
  ["ann@例え.テスト", "ann@xn--r8jz45g.xn--zckzah"],
  ["ann@пример.рф", "ann@xn--e1afmkfd.xn--p1ai"],
])("the address %j is normalized to %j, at which mail arrives", (typed, normalized) => {
  expect(normalizeEmail(typed)).toBe(normalized);
  expect(isEmailAddress(normalized)).toBe(true);
});

test.each([
  "ünn@example.com",
  "ann@münchen",
  "ann@mün chen.example",
  "münchen.example",
  "ann@ü/x.de",
  "ann@example.xn--",
  "ann@example.xn--p1ai-",
  "ann@example.x1",
])("%j is no address", (typed) => expect(isEmailAddress(normalizeEmail(typed))).toBe(false));

test("a provider's address at a domain in any script is that of its mailbox", () => {
  expect(parseVerifiedEmail("Ann@Example.COM")).toBe("ann@example.com");
  expect(parseVerifiedEmail("ann@Bücher.example")).toBe("ann@xn--bcher-kva.example");
});

test.each([
  ["a full-width letter of the name", "ａnn@example.com"],
  ["a full-width letter of the domain", "ann@ｅxample.com"],
  ["an invisible character in the domain", "ann@exam\u00adple.com"],
  ["a variation selector in the domain", "ann@exam\ufe0fple.com"],
  ["an ideographic full stop", "ann@example\u3002com"],
  ["a letter of another script in the name", "ünn@bücher.example"],
  ["spaces", " ann@example.com"],
  ["another type", 5],
])("a provider's address with %s is refused", (_, email) => {
  expect(parseVerifiedEmail(email)).toBeNull();
});
