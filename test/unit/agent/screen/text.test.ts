/** How texts are cut and wrapped in the cells of a terminal, and which are safe to print. */
import { expect, test } from "vitest";
import { cutText, formatPath, getWidth, wrapText } from "../../../../agent/screen/text.ts";

test.each([
  ["abc", 3],
  ["日本", 4],
  ["e\u0301", 1],
  ["👍", 2],
  ["ｆｕｌｌ", 8],
])("%s takes %i cells", (text, width) => {
  expect(getWidth(text)).toBe(width);
});

test("a text is cut between characters", () => {
  expect(cutText("日本語", 5)).toBe("日本…");
  expect(cutText("日本語", 4)).toBe("日…");
  expect(cutText("ab👩‍👩‍👧", 4)).toBe("ab…");
  expect(wrapText("a bc averyverylongword d", 8)).toEqual(["a bc", "averyver", "ylongwor", "d d"]);
});

test.each([
  ["/%e6%97%a5%E6%9C%AC", "/日本"],
  ["/%1b[31m%0a%9b2J%20%2F", "/%1b[31m%0a%9b2J%20%2F"],
  ["/%e2%80%aegpj.exe", "/%e2%80%aegpj.exe"],
  ["/\u001b]0;title\u0007\u009b2J", "/\\x1b]0;title\\x07\\x9b2J"],
  [Buffer.from("/é\u202e").toString("latin1"), "/é\\u{202e}"],
])("the path %j is shown as %s", (path, shown) => {
  expect(formatPath(path)).toBe(shown);
});

test("a path of 100 kB is cut before it is decoded, between characters", () => {
  const path = Buffer.from(`/${"日本/".repeat(15_000)}`).toString("latin1");
  const shown = formatPath(path);
  expect(shown).toMatch(/^\/(日本\/)+日?本?$/);
  expect(shown.length).toBeLessThan(1_000);
  expect(formatPath(`/${"\u001b[2J".repeat(25_000)}`)).not.toMatch(/\p{Cc}/u);
});
