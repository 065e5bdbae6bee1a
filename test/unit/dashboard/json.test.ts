/** JSON as a tree, from senders that may be hostile. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isContainer,
  parseJsonTree,
  type JsonContainer,
  type JsonValue,
} from "../../../dashboard/pages/requests/decode/json/json.ts";
import {
  formatJson,
  sortFields,
} from "../../../dashboard/pages/requests/decode/json/json-format.ts";
import {
  chooseInitiallyOpen,
  formatJsonPath,
  listRows,
} from "../../../dashboard/pages/requests/decode/json/json-tree-rows.ts";

function parse(text: string): JsonValue {
  const result = parseJsonTree(text);
  if ("error" in result) throw new Error(result.error.message);
  return result.value;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const everything = { has: isContainer };

describe("a valid document", () => {
  test.each([
    "null",
    '"a"',
    " [ ] ",
    "{}",
    "-0.5e+10",
    '{"a":[1,{"b":null},true,false],"":"\\u00e9\\n\\"\\\\\\/"}',
    "[[[]],{},[{}]]",
  ])("has the values that JSON.parse finds: %s", (text) => {
    expect(JSON.parse(formatJson(parse(text)))).toEqual(JSON.parse(text));
  });

  test("is as JSON.parse finds it, and so is one with a character too few", () => {
    const document = fc.tuple(fc.json(), fc.nat(4), fc.nat()).map(([json, spaces, at]) => {
      const text = JSON.stringify(JSON.parse(json), null, spaces);
      return { text, cut: text.slice(0, at % text.length) + text.slice((at % text.length) + 1) };
    });
    fc.assert(
      fc.property(document, ({ text, cut }) => {
        expect(JSON.parse(formatJson(parse(text)))).toEqual(JSON.parse(text));
        expect("value" in parseJsonTree(cut)).toBe(isJson(cut));
      }),
    );
  });

  test("has the same objects whenever it is read, because a tree remembers which ones are open", () => {
    const root = parse('[{"a": []}]') as JsonContainer;
    expect(root.entries[0]).toBe(root.entries[0]);
  });

  test("has numbers as they were written, and repeated keys", () => {
    const text = '{"id": 12345678901234567890, "n": 1.00, "e": 1E400, "id": 2}';
    expect(formatJson(parse(text))).toBe(
      '{\n  "id": 12345678901234567890,\n  "n": 1.00,\n  "e": 1E400,\n  "id": 2\n}',
    );
  });

  test("with the name __proto__ is a document like any other", () => {
    expect(formatJson(parse('{"__proto__": {"a": 1}}'))).toContain('"__proto__": {');
  });

  test("with 10,000 levels can be parsed, listed, sorted and formatted", () => {
    const levels = 10_000;
    const root = parse("[".repeat(levels) + "]".repeat(levels));
    sortFields(root);
    const rows = listRows(root, everything);
    expect(rows).toHaveLength(levels);
    expect(formatJsonPath(rows.at(-1)!)).toBe(`$${"[0]".repeat(levels - 1)}`);
    expect(formatJson(root).length).toBeLessThan(5_000_000);
  });
});

describe("an invalid document", () => {
  test.each([
    ["", 1, 1],
    ["{", 1, 2],
    ['{"a": 1,}', 1, 9],
    ["[1,]", 1, 4],
    ["[1 2]", 1, 4],
    ['{\n  "a": oops\n}', 2, 8],
    ['"abc', 1, 5],
    ['"a\nb"', 1, 3],
    ['"\\x"', 1, 3],
    ['"\\u12g4"', 1, 3],
    ["[1] 2", 1, 5],
    ["{a: 1}", 1, 2],
    ["01", 1, 2],
    ["nul", 1, 1],
    ["]", 1, 1],
    ["[}", 1, 2],
    ["NaN", 1, 1],
  ])("%j has an error in line %i, column %i", (text, line, column) => {
    expect(() => JSON.parse(text) as unknown).toThrow();
    expect(parseJsonTree(text)).toMatchObject({ error: { line, column } });
  });

  test("that only opens 200,000 arrays is refused without a stack overflow", () => {
    expect(parseJsonTree("[".repeat(200_000))).toHaveProperty("error");
  });
});

describe("a tree", () => {
  test("shows all values of a small document, and few of a large one", () => {
    const small = parse('{"a": {"b": [1, 2]}}');
    expect(listRows(small, chooseInitiallyOpen(small))).toHaveLength(5);
    const large = parse(JSON.stringify(Array.from({ length: 300 }, () => ({ a: 1, b: [2] }))));
    const rows = listRows(large, chooseInitiallyOpen(large));
    expect(rows.length).toBeGreaterThan(300);
    expect(rows.length).toBeLessThan(500);
  });

  test("names the path of a value", () => {
    const root = parse('{"items": [{"a b": 1}]}');
    const rows = listRows(root, everything);
    expect(rows.map((row) => formatJsonPath(row))).toEqual([
      "$",
      "$.items",
      "$.items[0]",
      '$.items[0]["a b"]',
    ]);
  });

  test("sorts fields, so that equal objects have equal texts", () => {
    const [one, other] = [
      parse('{"b": 1, "a": {"d": 1, "c": 2}}'),
      parse('{"a":{"c":2,"d":1},"b":1}'),
    ];
    for (const root of [one, other]) sortFields(root);
    expect(formatJson(one)).toBe(formatJson(other));
  });
});
