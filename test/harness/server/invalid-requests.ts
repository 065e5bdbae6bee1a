/** Generates invalid requests: examples that match a schema, and values to replace each part of them. */

import type { Schema } from "../../../workers/api/reference/openapi.ts";

const HOSTILE_STRINGS = [
  "",
  " ",
  "\0",
  "a\0b",
  "a\ud800b",
  "\udc00",
  "😀".repeat(60),
  "ﷺ".repeat(200),
  "x".repeat(100_000),
  "\u202eevil\u2066",
  "a\u0301".repeat(50),
  "line\r\nSubject: another",
  "' or 1=1 --",
  "{{7*7}}${7*7}<script>",
  "__proto__",
  "NaN",
  "-1",
  "1e400",
  "99999999999999999999",
  "../../etc/passwd",
  "00000000-0000-0000-0000-000000000000",
  "ffffffff-ffff-ffff-ffff-ffffffffffff",
  "+275760-09-13T00:00:00.001Z",
  "0000-01-01T00:00:00Z",
  "9999-12-31T23:59:59.999999999-23:59",
  "-infinity",
];

const URL_VALUE_MAX_CHARS = 4_000;
/** Those strings as parameters of a URL, which has no unpaired surrogates and a limited length. */
export const HOSTILE_PARAMETERS = HOSTILE_STRINGS.map((text) =>
  text.toWellFormed().slice(0, URL_VALUE_MAX_CHARS),
);

/** As JSON text, because `JSON.stringify` would not write some of them. */
const HOSTILE_NUMBERS = ["-1", "-0", "1.5", "1e308", "1e400", "2147483648", "9007199254740993"];
const DEEPLY_NESTED = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
const HOSTILE_OBJECT = '{"__proto__":{"admin":true},"toString":null,"length":-1}';
const OTHER_TYPES = [
  "null",
  "true",
  "0",
  '"0"',
  "[]",
  "{}",
  '["x",{}]',
  HOSTILE_OBJECT,
  DEEPLY_NESTED,
];

/** Whole bodies. `every-route.test.ts` sends the simple ones, such as an array. */
export const HOSTILE_BODIES = ["{}", HOSTILE_OBJECT, DEEPLY_NESTED];

/** Stands for a name that is new in each request (`fillUniqueNames`). */
const UNIQUE_NAME = "a-unique-name";
let uniqueNames = 0;

export function fillUniqueNames(body: string): string {
  uniqueNames += 1;
  return body.replaceAll(UNIQUE_NAME, `invalid-requests-${uniqueNames}`);
}

/**
 * By format, and by name for fields whose schema does not describe their format. The project is that of
 * `createResources`.
 */
const EXAMPLES: Record<string, unknown> = {
  uuid: "00000000-0000-4000-8000-000000000000",
  "date-time": "2026-01-01T00:00:00Z",
  after: "0",
  allowed_domains: "example.com",
  allowed_emails: "person@example.com",
  allowed_issuers: "https://example.com",
  allowed_subdomains: "*-shop",
  body_base64: "AAAA",
  cidr: "10.88.0.0/24",
  cidrs: "192.0.2.0/24",
  cursor: "1",
  domain: `${UNIQUE_NAME}.example`,
  email: "person@example.com",
  jwks_url: "https://example.com/jwks.json",
  month: "2026-01",
  name: UNIQUE_NAME,
  new_password: "correct horse battery staple",
  nonce: "0".repeat(32),
  password: "correct horse battery staple",
  path: "/path",
  path_prefix: "/private",
  projectSlug: "shop",
  provider: "idp_a",
  public_endpoint: "vpn.example.com:51820",
  public_key: "B".repeat(42) + "A=",
  server_public_key: "C".repeat(42) + "A=",
  secret_base32: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
  slug: UNIQUE_NAME,
  status: "200",
  subdomain: UNIQUE_NAME,
};

/** Generates one example for each alternative in the schema. */
export function generateExamples(schema: Schema, name = ""): unknown[] {
  const { additionalProperties } = schema;
  if (schema.const !== undefined) return [schema.const];
  if (schema.enum) return schema.enum.slice(0, 1);
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (alternatives) return alternatives.flatMap((one) => generateExamples(one, name));
  switch ([schema.type].flat()[0]) {
    case "object":
      return generateObjects(
        Object.entries(
          schema.properties ??
            (typeof additionalProperties === "object" ? { other: additionalProperties } : {}),
        ),
      );
    case "array":
      // One example with all alternatives: an invalid value in each of them costs one request.
      return [generateExamples(schema.items ?? {}, name)];
    case "integer":
    case "number":
      return [Math.max(schema.minimum ?? 1, 1)];
    case "boolean":
      return [true];
    case "null":
      return [null];
    default:
      return [EXAMPLES[schema.format ?? ""] ?? EXAMPLES[name] ?? "example"];
  }
}

function generateObjects(properties: [string, Schema][]): Record<string, unknown>[] {
  const fields = properties.map(
    ([name, schema]) => [name, generateExamples(schema, name)] as const,
  );
  const count = Math.max(1, ...fields.map(([, values]) => values.length));
  return Array.from({ length: count }, (_, at) =>
    Object.fromEntries(fields.map(([name, values]) => [name, values[at % values.length]])),
  );
}

/** Writes every key twice, and adds `__proto__`. */
export function duplicateKeys(example: unknown): string {
  const text = JSON.stringify(example);
  return text === "{}"
    ? text
    : `{${text.slice(1, -1)},"__proto__":{"role":"owner"},${text.slice(1)}`;
}

/** A part of an example, and the invalid values that can replace it. */
export interface Part {
  /** As the API names it: the keys on the way to the part, joined by dots. */
  path: string;
  /** Whether an invalid value makes other parts invalid or unread. */
  concernsOthers: boolean;
  /** As JSON text. */
  values: string[];
}

/** The field that selects one of several schemas. */
const DISCRIMINATOR = /\.kind$/;

/** @returns the parts of an example at every depth, without the example itself. */
export function listParts(example: unknown, path = ""): Part[] {
  const isLeaf = typeof example !== "object" || example === null;
  const children = isLeaf
    ? []
    : Object.entries(example).flatMap(([key, part]) =>
        listParts(part, path === "" ? key : `${path}.${key}`),
      );
  const values = [...OTHER_TYPES, ...getHostileValues(example)];
  const concernsOthers = !isLeaf || DISCRIMINATOR.test(path);
  return path === "" ? children : [{ path, concernsOthers, values }, ...children];
}

function getHostileValues(value: unknown): string[] {
  if (typeof value === "number") return HOSTILE_NUMBERS;
  if (typeof value !== "string") return [];
  return [...HOSTILE_STRINGS, `${value}\0`, `${value}\ud800`].map((text) => JSON.stringify(text));
}

/** @returns the example as JSON text, with the parts at these paths replaced. */
export function replaceParts(example: unknown, textByPath: ReadonlyMap<string, string>): string {
  const texts = [...textByPath];
  const mark = (part: unknown, path: string): unknown => {
    const at = texts.findIndex(([replaced]) => replaced === path);
    if (at !== -1) return `<${at}>`;
    if (typeof part !== "object" || part === null) return part;
    const entries = Object.entries(part).map(
      ([key, child]) => [key, mark(child, path === "" ? key : `${path}.${key}`)] as const,
    );
    return Array.isArray(part) ? entries.map(([, child]) => child) : Object.fromEntries(entries);
  };
  return JSON.stringify(mark(example, "")).replace(/"<(\d+)>"/g, (_, at) => texts[Number(at)]![1]);
}
