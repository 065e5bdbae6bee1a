import { expect, test } from "vitest";
import { Table } from "../../../../agent/output/format/table.ts";
import { cutText } from "../../../../agent/screen/text.ts";

import { TUNNEL_COLUMNS } from "../../../../agent/output/management/tunnels.ts";
import {
  formatComingExpiry,
  formatExpiry,
} from "../../../../agent/output/format/format-relative-time.ts";

const COLUMNS = [{ header: "NAME" }, { header: "URL" }, { header: "N", isNumeric: true }];
const ROW = ["shop", `http://shop.example/${"x".repeat(40)}`, "17"];

test("a table is complete without a width, and its columns begin at the same place in every row", () => {
  const lines = new Table(COLUMNS, undefined).format([ROW, ["a", "b", "5"]]);
  expect(lines).toEqual([
    `NAME  URL${" ".repeat(57)}   N`,
    `shop  ${ROW[1]}  17`,
    `a     b${" ".repeat(59)}   5`,
  ]);
});

test("at a terminal the widest column is cut until each row fits", () => {
  const lines = new Table(COLUMNS, 30).format([ROW]);
  expect(lines.map((line) => line.length)).toEqual([30, 30]);
  expect(lines[1]).toBe("shop  http://shop.example…  17");
});

test("at a terminal a table of tunnels leaves out columns instead of cutting names and URLs", () => {
  const url = "https://a-rather-long-name.tunnels.example";
  const tunnel = ["a-rather-long-name", url, "active", "connected", "12345678", "default", "never"];
  const table = new Table(TUNNEL_COLUMNS, 80);
  const [headers, row] = table.format([tunnel]);
  expect(headers).toMatch(/^NAME +URL +STATE +REQUESTS$/);
  expect(row).toBe(`a-rather-long-name  ${url}  active  12345678`);
  const formatRowAt = (width: number) => new Table(TUNNEL_COLUMNS, width).format([tunnel])[1];
  expect(formatRowAt(75)).toBe(`a-rather-long-name  ${url}  active`);
  expect(formatRowAt(50)).toBe("a-rather-long-name  https://a-rather-long…  active");
  expect(new Table(TUNNEL_COLUMNS, 200).format([tunnel])[0]).toMatch(/AGENT .* PROJECT .*EXPIRES$/);
});

test("no row of a table of tunnels is wider than a narrow terminal", () => {
  const url = "https://a-rather-long-name.tunnels.example";
  const rest = [url, "active", "connected", "12345678", "default", "never"];
  const formatAt = (width: number, name: string) =>
    new Table(TUNNEL_COLUMNS, width).format([[name, ...rest]]);
  expect(formatAt(40, "a-rather-long-name")).toEqual([
    "NAME                URL           STATE",
    "a-rather-long-name  https://a-r…  active",
  ]);
  expect(formatAt(40, "n".repeat(63))).toEqual(["NAME", `${"n".repeat(39)}…`]);
  expect(formatAt(80, "n".repeat(63))[1]).toBe(`${"n".repeat(63)}  https:…  active`);
  // A later part may have a longer name.
  const table = new Table(TUNNEL_COLUMNS, 40);
  table.format([["shop", ...rest]]);
  expect(table.format([["n".repeat(63), ...rest]])[0]).toHaveLength(40);
});

test("further parts of a table have no headers", () => {
  const table = new Table(COLUMNS, undefined);
  expect(table.format([["a", "b", "1"]])).toHaveLength(2);
  expect(table.format([["c", "d", "2"]])).toHaveLength(1);
});

test("control characters are escaped, and wide characters count twice", () => {
  const [, row] = new Table([{ header: "A" }, { header: "B" }], undefined).format([
    ["\u001b[31m日本\u0007", "x"],
  ]);
  expect(row).toBe("\\x1b[31m日本\\x07  x");
  expect(cutText("日本語", 5)).toBe("日本…");
  expect(cutText("日本語", 6)).toBe("日本語");
});

test.each([
  [119, "in 119 s"],
  [120, "in 2 min"],
  [7_169, "in 119 min"],
  [7_199, "in 2 h"],
  [7_200, "in 2 h"],
  [48 * 3_600 - 1, "in 2 days"],
])("an expiry in %i s is printed as %s", (seconds, text) => {
  expect(formatExpiry(new Date(seconds * 1_000).toISOString(), 0)).toBe(text);
});

test("a tunnel that is online has not expired, whatever the clock of this machine says", () => {
  const expiresAt = "2026-03-01T12:00:00.000Z";
  const afterMs = Date.parse(expiresAt) + 1_000;
  expect(formatExpiry(expiresAt, afterMs)).toBe("expired");
  expect(formatComingExpiry(expiresAt, afterMs)).toBe(`at ${expiresAt}`);
  expect(formatComingExpiry(expiresAt, afterMs - 61_000)).toBe("in 60 s");
});
