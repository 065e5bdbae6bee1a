import { expect, test } from "vitest";
import { parseBearerToken } from "../../../shared/bearer-token.ts";

test.each([
  ["Bearer abc", "abc"],
  ["bearer  a.b-c", "a.b-c"],
  ["Bearer an operator's secret", "an operator's secret"],
  ["Basic abc", null],
  ["Bearer ", null],
  ["xBearer abc", null],
  ["", null],
  [null, null],
  [undefined, null],
])("%j holds the token %j", (header, token) => {
  expect(parseBearerToken(header)).toBe(token);
});
