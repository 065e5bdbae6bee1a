import { expect, test, vi } from "vitest";
import { toNfkc } from "../../../../shared/text/nfkc.ts";

test("a text of a usual length is normalized", () => {
  expect(toNfkc("e\u0301\uFF21")).toBe("\u00E9A");
});

test("a text that is too long to be valid is not: it could become eighteen times as long", () => {
  const normalize = vi.spyOn(String.prototype, "normalize");
  const text = "\uFDFA".repeat(300_000);
  expect(toNfkc(text)).toBe(text);
  expect(normalize).not.toHaveBeenCalled();
  normalize.mockRestore();
});
