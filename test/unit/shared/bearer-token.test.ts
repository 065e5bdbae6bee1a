import { expect, test } from "vitest";
import { parseBearerSecret, parseBearerToken } from "../../../shared/bearer-token.ts";

test.each([
  ["Bearer abc", "abc"],
  ["bearer  a.b-c", "a.b-c"],
  ["Bearer a, Bearer b", null],
  ["Basic abc", null],
  ["Bearer ", null],
  ["xBearer abc", null],
  ["", null],
  [null, null],
  [undefined, null],
])("%j holds the token %j", (header, token) => {
  expect(parseBearerToken(header)).toBe(token);
});

test("a secret that an operator chose can have spaces", () => {
  expect(parseBearerSecret("Bearer an operator's secret")).toBe("an operator's secret");
  expect(parseBearerSecret("Basic abc")).toBeNull();
});
