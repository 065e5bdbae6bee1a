/** Which keys the bytes of a terminal are, and what they do to a line. */
import { expect, test } from "vitest";
import { editLine, parseKeys } from "../../../../agent/screen/keys.ts";

test("keys are parsed from characters and escape sequences", () => {
  expect(parseKeys("jé\u001b[A\u001bOB\r\u007f\u0003")).toEqual([
    ...["j", "é", "up", "down", "enter", "backspace", "ctrl-c"],
  ]);
  expect(parseKeys("\u001b")).toEqual(["escape"]);
  expect(parseKeys("\t\u001b[Z\u001b[C\u001bOD")).toEqual(["tab", "shift-tab", "right", "left"]);
  expect(parseKeys("\u001b[200~\u001b[1;5C\u0001")).toEqual([]);
});

test("keys edit the line of the filter: Ctrl-W deletes a word, Ctrl-U everything", () => {
  const edit = (text: string, keys: string): string => parseKeys(keys).reduce(editLine, text);
  expect(edit("status:5xx", " pé\u007f\u001b[A")).toBe("status:5xx p");
  expect(edit("status:5xx path:/a  ", "\u0017")).toBe("status:5xx ");
  expect(edit("status:5xx", "\u0017\u0017")).toBe("");
  expect(edit("status:5xx path:/a", "\u0015x")).toBe("x");
});
