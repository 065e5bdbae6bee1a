/** Every kind of issue, as a caller of the API reads it after the name of the field. */
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { describeIssue } from "../../../../protocol/schemas/issue-messages.ts";
import { PageQuery, WholeNumber } from "../../../../protocol/schemas/scalars.ts";
import { ClientConnectQuery } from "../../../../protocol/schemas/tunnels/tunnels.ts";

type IssueCode = z.core.$ZodIssue["code"];

/** By issue code: a schema, an invalid value, and the message. */
const CASES: Record<IssueCode, [schema: z.ZodType, value: unknown, message: string][]> = {
  invalid_type: [
    [z.string(), undefined, "is required"],
    [z.string(), 7, "must be a string"],
    [z.number(), "7", "must be a number"],
    [z.number(), NaN, "must be a number"],
    [z.coerce.number(), "seven", "must be a number"],
    [z.int(), 1.5, "must be a whole number"],
    [z.boolean(), "yes", "must be true or false"],
    [z.array(z.string()), {}, "must be an array"],
    [z.object({}), null, "must be an object"],
    [z.record(z.string(), z.string()), [], "must be an object"],
    [z.null(), 0, "must be null"],
    [z.symbol(), 0, "must be of type symbol"],
  ],
  invalid_value: [
    [z.enum(["pro", "team"]), undefined, "is required"],
    [z.enum(["pro", "team"]), "free", "must be one of: pro, team"],
    [z.literal(true), false, "must be true"],
  ],
  too_big: [
    [z.string().max(100), "x".repeat(101), "must have at most 100 characters"],
    [z.string().max(1), "xx", "must have at most 1 character"],
    [z.string().length(2), "xxx", "must have exactly 2 characters"],
    [z.array(z.int()).max(2), [1, 2, 3], "must have at most 2 items"],
    [z.int().max(65_535), 65_536, "must be at most 65535"],
    [z.number().lt(1), 1, "must be less than 1"],
    [z.int(), 1e300, "must be at most 9007199254740991"],
  ],
  too_small: [
    [z.string().min(1), "", "must not be empty"],
    [z.string().min(8), "short", "must have at least 8 characters"],
    [z.string().length(2), "x", "must have exactly 2 characters"],
    [z.array(z.int()).min(1), [], "must not be empty"],
    [z.array(z.int()).min(2), [1], "must have at least 2 items"],
    [z.int().min(1), 0, "must be at least 1"],
    [z.number().gt(0), 0, "must be more than 0"],
  ],
  invalid_format: [
    [z.uuid(), "1", "must be a UUID"],
    [z.url(), "here", "must be a URL"],
    [z.email(), "me", "must be an email address"],
    [z.base64(), "*", "must be base64 with padding"],
    [
      z.iso.datetime({ offset: true }),
      "today",
      "must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z",
    ],
    [z.string().startsWith("/"), "a", 'must start with "/"'],
    [z.string().endsWith("/"), "a", 'must end with "/"'],
    [z.string().includes("/"), "a", 'must contain "/"'],
    [z.string().regex(/^a$/), "b", "has the wrong format"],
    [z.string().regex(/^a$/, "must be the letter a"), "b", "must be the letter a"],
  ],
  not_multiple_of: [[z.int().multipleOf(5), 7, "must be a multiple of 5"]],
  unrecognized_keys: [
    [z.strictObject({}), { a: 1 }, "has an unknown field: a"],
    [z.strictObject({}), { a: 1, b: 2 }, "has unknown fields: a, b"],
  ],
  invalid_union: [
    [z.union([z.string(), z.int()]), null, "must be a string, or must be a number"],
    [z.union([z.object({ a: z.int() }), z.object({ b: z.int() })]), {}, "is not valid"],
    [
      z.discriminatedUnion("kind", [
        z.object({ kind: z.literal("deny") }),
        z.object({ kind: z.literal("rate_limit") }),
      ]),
      { kind: "allow" },
      "must be one of: deny, rate_limit",
    ],
  ],
  invalid_key: [
    [z.record(z.string().max(2), z.int()), { abc: 1 }, "must have at most 2 characters"],
  ],
  invalid_element: [
    [z.map(z.unknown(), z.string()), new Map([[{}, 1]]), "has an invalid entry: must be a string"],
  ],
  custom: [
    [z.string().refine(() => false), "x", "is not valid"],
    [z.string().refine(() => false, "must not be x"), "x", "must not be x"],
  ],
};

const ROWS = Object.entries(CASES).flatMap(([code, rows]) =>
  rows.map((row) => [code, ...row] as const),
);

/** Sets the messages as the programs do, and restores zod's own for other tests in this process. */
function useMessages(): void {
  const { customError } = z.config();
  z.config({ customError: describeIssue });
  onTestFinished(() => void z.config({ customError }));
}

test.each(ROWS)("%s: %#: has a message that names the problem", (code, schema, value, message) => {
  useMessages();
  const [issue] = schema.safeParse(value).error?.issues ?? [];
  expect([issue?.code, issue?.message]).toEqual([code, message]);
});

test("a value that may have one of two formats names both", () => {
  useMessages();
  const { error } = ClientConnectQuery.safeParse({ tunnel: "_" });
  expect(error?.issues[0]?.message).toMatch(/^must be a UUID, or must have /);
});

test.each([
  [WholeNumber(1, 10), 1e20, [], "must be at most 10"],
  [WholeNumber(1, 10), -1e20, [], "must be at least 1"],
  [WholeNumber(1, 10), 1.5, [], "must be a whole number"],
  [WholeNumber(1, Number.MAX_SAFE_INTEGER), 1e20, [], "must be at most 9007199254740991"],
  [PageQuery, { limit: "99999999999999999999" }, ["limit"], "must be at most 1000"],
])(
  "a number that is out of range has one issue, with its own bounds: %$",
  (schema, value, path, message) => {
    const { error } = z.safeParse(schema, value, { error: describeIssue });
    expect(error?.issues).toEqual([expect.objectContaining({ path, message })]);
  },
);
