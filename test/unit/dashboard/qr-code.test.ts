/** The expected codes were checked once with an independent reader. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { encodeQrCode } from "../../../dashboard/ui/qr-code.ts";

function drawing(text: string): string {
  const rows = encodeQrCode(text) ?? [];
  return rows.map((row) => row.map((isDark) => (isDark ? "#" : ".")).join("")).join("\n");
}

test("a short text is drawn as the standard requires", () => {
  expect(`\n${drawing("underpass")}\n`).toBe(`
#######.#.#.#.#######
#.....#.#.....#.....#
#.###.#.....#.#.###.#
#.###.#.#.##..#.###.#
#.###.#...##..#.###.#
#.....#...###.#.....#
#######.#.#.#.#######
........##.##........
#.##.###.####.#..#.##
.#.###..#.###...##..#
...##.#.#.##.#.#.####
.###...#..##...###...
..#.###.##..####...#.
........#..#..#.#..#.
#######.#..##.###....
#.....#.##.....#.###.
#.###.#..##.#.#..##..
#.###.#.#..#..##.#.#.
#.###.#.##..#.#..##..
#.....#...#..#..#...#
#######.#....#..###..
`);
});

test.each([
  [100, 41, "98283796d3af438b0a6ef48f67899f576ebae49dac1515537cc48c6a2c3b32cf"],
  [180, 53, "09e24e8f06d582ab281a5a95ee97f0cb281efc10a6cb21bd55cc8c7dec62310c"],
  [600, 93, "5e57471a2ee560d1142d749cf2346a00b97f7f4d6ab7e47b000eda4cc5e510b2"],
])("a text of %i characters is drawn in the version that holds it", (chars, size, hash) => {
  const text = "otpauth://".padEnd(chars, "underpass ");
  expect(encodeQrCode(text)).toHaveLength(size);
  expect(createHash("sha256").update(drawing(text)).digest("hex")).toBe(hash);
});

test("a text that is too long has no code", () => {
  expect(encodeQrCode("x".repeat(666))).toHaveLength(97);
  expect(encodeQrCode("x".repeat(667))).toBeNull();
});
