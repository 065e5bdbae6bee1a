/** Generates invalid requests: examples that match a schema, with one part replaced. */

/** The part of JSON Schema that the API's own document uses. */
export interface Schema {
  type?: string;
  enum?: unknown[];
  format?: string;
  minimum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
}

export const HOSTILE_STRINGS = [
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

/** As JSON text, because `JSON.stringify` would not write some of them. */
const HOSTILE_NUMBERS = ["-1", "-0", "1.5", "1e308", "1e400", "2147483648", "9007199254740993"];
const OTHER_TYPES = [
  "null",
  "true",
  "0",
  '"0"',
  "[]",
  "{}",
  '["x",{}]',
  '{"__proto__":{"admin":true},"toString":null,"length":-1}',
  `${"[".repeat(10_000)}${"]".repeat(10_000)}`,
];

/** By format, and by name for fields whose schema does not describe their format. */
const EXAMPLES: Record<string, string> = {
  uuid: "00000000-0000-4000-8000-000000000000",
  email: "person@example.com",
  password: "correct horse battery staple",
  new_password: "correct horse battery staple",
  path_prefix: "/private",
  allowed_issuers: "https://example.com",
  start_time: "2026-01-01T00:00:00Z",
};

/** Generates one example for each alternative in the schema. */
export function generateExamples(schema: Schema, name = ""): unknown[] {
  if (schema.enum) return schema.enum.slice(0, 1);
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (alternatives) return alternatives.flatMap((one) => generateExamples(one, name));
  switch (schema.type) {
    case "object":
      return generateObjects(Object.entries(schema.properties ?? {}));
    case "array":
      return generateExamples(schema.items ?? {}, name).map((item) => [item]);
    case "integer":
    case "number":
      return [Math.max(schema.minimum ?? 1, 1)];
    case "boolean":
      return [true];
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

/**
 * Generates JSON bodies in which one part, at any depth, does not match the schema. Each optional field is tested
 * without the other optional fields, because some exclude each other.
 */
export function generateInvalidBodies(schema: Schema): string[] {
  const { properties = {}, required = [] } = schema;
  const fields = Object.entries(properties);
  const objectWith = (optional?: string) => ({
    ...schema,
    properties: Object.fromEntries(
      fields.filter(([name]) => name === optional || required.includes(name)),
    ),
  });
  const optional = fields.map(([name]) => name).filter((name) => !required.includes(name));
  return [
    ...generateExamples(schema).map(withDuplicateKeys),
    ...generateExamples(objectWith()).flatMap((example) =>
      replaceParts(example, listPaths(example)),
    ),
    ...optional.flatMap((name) =>
      generateExamples(objectWith(name)).flatMap((example) =>
        replaceParts(
          example,
          listPaths(example).filter(([first]) => first === name),
        ),
      ),
    ),
  ];
}

/** Writes every key twice, and adds `__proto__`. */
function withDuplicateKeys(example: unknown): string {
  const text = JSON.stringify(example);
  return text === "{}"
    ? text
    : `{${text.slice(1, -1)},"__proto__":{"role":"owner"},${text.slice(1)}`;
}

function replaceParts(example: unknown, paths: Path[]): string[] {
  return paths.flatMap((path) => {
    const text = JSON.stringify(replaceAt(example, path, "<here>"));
    const value = path.reduce(
      (part, key) => (part as Record<string | number, unknown>)[key],
      example,
    );
    return [...OTHER_TYPES, ...getHostileValues(value)].map((nasty) =>
      text.replace('"<here>"', () => nasty),
    );
  });
}

function getHostileValues(value: unknown): string[] {
  if (typeof value === "number") return HOSTILE_NUMBERS;
  if (typeof value !== "string") return [];
  return [...HOSTILE_STRINGS, `${value}\0`, `${value}\ud800`].map((text) => JSON.stringify(text));
}

type Path = (string | number)[];

function listPaths(value: unknown): Path[] {
  if (typeof value !== "object" || value === null) return [[]];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [[], ...entries.flatMap(([key, part]) => listPaths(part).map((rest) => [key, ...rest]))];
}

function replaceAt(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by;
  if (Array.isArray(value)) return value.with(Number(key), replaceAt(value[Number(key)], rest, by));
  const fields = value as Record<string, unknown>;
  return { ...fields, [key]: replaceAt(fields[String(key)], rest, by) };
}
