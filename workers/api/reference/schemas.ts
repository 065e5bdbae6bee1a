/** Translates the schemas that validate into the schemas of the document. */
import { z, type ZodType } from "zod";
import * as components from "./components.ts";
import { FIELDS } from "./fields.ts";
import { COMPONENT, type Schema } from "./openapi.ts";

const LOCAL = "#/$defs/";
/** A schema that only requests have, because defaults make its fields optional there. */
const INPUT_SUFFIX = "Input";

const UUID = "Uuid";
const UUID_COMPONENT: Schema = {
  type: "string",
  format: "uuid",
  description: "A UUID (RFC 9562).",
  examples: ["3f2b8c1e-5d4a-4f6b-9c7d-0a1b2c3d4e5f"],
};

/** What a schema describes: what callers send, or what they get. */
export type Direction = "request" | "response";

/** The components of one document. Responses are added before requests, so that they have the plain names. */
export class SchemaComponents {
  readonly byName: Record<string, Schema> = { [UUID]: UUID_COMPONENT };

  constructor() {
    // `z.toJSONSchema` reads the names from the registry.
    for (const [id, schema] of Object.entries(components)) {
      z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id });
    }
  }

  /** @param direction requests may leave out fields that have a default. */
  add(schema: ZodType, direction: Direction): Schema {
    const {
      $schema: _,
      $defs = {},
      ...root
    } = z.toJSONSchema(schema, {
      io: direction === "request" ? "input" : "output",
      unrepresentable: "any",
      override: ({ jsonSchema }) => simplify(jsonSchema as Schema),
    }) as Schema & { $schema?: string; $defs?: Record<string, Schema> };
    const renamed = this.#findOtherForms($defs);
    const toName = (name: string) => (renamed.has(name) ? name + INPUT_SUFFIX : name);
    for (const [name, definition] of Object.entries($defs)) {
      const described = mapReferences(definition, toName);
      describeFields(described, name);
      this.byName[toName(name)] ??= described;
    }
    const result = mapReferences(root, toName);
    describeFields(result, "");
    return result;
  }

  /** @returns the names whose component has another form already, and those that refer to one of them. */
  #findOtherForms(definitions: Record<string, Schema>): Set<string> {
    const renamed = new Set<string>();
    const isOther = (name: string, definition: Schema) => {
      const existing = this.byName[name];
      if (existing === undefined || renamed.has(name)) return false;
      const toName = (other: string) => (renamed.has(other) ? other + INPUT_SUFFIX : other);
      const form = mapReferences(definition, toName);
      describeFields(form, name);
      return JSON.stringify(form) !== JSON.stringify(existing);
    };
    for (;;) {
      const found = Object.entries(definitions).filter(([name, definition]) =>
        isOther(name, definition),
      );
      if (found.length === 0) return renamed;
      for (const [name] of found) renamed.add(name);
    }
  }
}

/** Replaces every reference to a local definition by one to a component. */
function mapReferences(schema: Schema, toName: (name: string) => string): Schema {
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === "$ref" && typeof value === "string" && value.startsWith(LOCAL)
      ? COMPONENT + toName(value.slice(LOCAL.length))
      : value,
  ) as Schema;
}

/** Runs for each part of a schema, before parts are taken out as components. */
function simplify(schema: Schema): void {
  // A client may be older than the service, so that fields can be added.
  if (schema.additionalProperties === false) delete schema.additionalProperties;
  if (schema.format === "uuid") {
    const { description } = schema;
    for (const key of Object.keys(schema) as (keyof Schema)[]) delete schema[key];
    Object.assign(schema, { $ref: COMPONENT + UUID, ...(description && { description }) });
    return;
  }
  // The format says the same.
  if (schema.format === "date-time" || schema.format === "uri") delete schema.pattern;
  if (schema.pattern !== undefined) schema.pattern = toPortablePattern(schema.pattern);
  for (const part of schema.allOf ?? []) {
    if (part.pattern !== undefined) part.pattern = toPortablePattern(part.pattern);
  }
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
}

/** Unicode's formatting characters, except those beyond U+FFFF, which patterns without the flag `u` see as two. */
const FORMATTING = String.raw`\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb`;

/**
 * Patterns of JSON Schema have no flags, and not every dialect has Unicode's properties. Unpaired surrogates need no
 * mention, because no valid JSON text has them.
 */
function toPortablePattern(source: string): string {
  return source
    .replaceAll(String.raw`\p{Cf}`, FORMATTING)
    .replaceAll(String.raw`\p{Zl}\p{Zp}`, String.raw`\u2028\u2029`)
    .replaceAll(String.raw`\p{Cs}`, "")
    .replaceAll(String.raw`\p{Cc}`, String.raw`\u0000-\u001f\u007f-\u009f`)
    .replaceAll(/\\0(?!\d)/g, String.raw`\u0000`);
}

/** Adds the descriptions of `FIELDS` to the properties that have none, at any depth. */
function describeFields(schema: Schema, owner: string): void {
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    property.description ??= findField(name, owner)?.description;
    describeFields(property, owner);
  }
  const { items, additionalProperties, oneOf, anyOf, allOf } = schema;
  const parts = [items, additionalProperties, ...(oneOf ?? []), ...(anyOf ?? []), ...(allOf ?? [])];
  for (const part of parts) if (typeof part === "object") describeFields(part, owner);
}

/** @param owner a component, or the id of an operation for its parameters. */
export function findField(name: string, owner: string) {
  const key = `${owner.replace(/Input$/, "")}.${name}`;
  if (Object.hasOwn(FIELDS, key)) return FIELDS[key];
  return Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
}
