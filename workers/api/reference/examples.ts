/** Builds an example for each schema, so that every operation of the document has one. */
import { isJsonObject } from "../../../shared/json.ts";
import { COMPONENT, resolveReference, type OpenApiDocument, type Schema } from "./openapi.ts";
import { findField, type Direction } from "./schemas.ts";

const EXAMPLES_BY_FORMAT: Record<string, unknown> = {
  "date-time": "2026-11-22T12:00:00.000Z",
  email: "ada@example.com",
  uri: "https://underpass.example",
};

/** Where a value is: it decides which example fits. */
interface Place {
  /** The name of the field or the parameter. */
  name: string;
  /** The component or the operation that it belongs to. */
  owner: string;
}

/** @param direction responses have the optional fields too. In requests, some of these exclude each other. */
export function buildExample(
  document: OpenApiDocument,
  schema: Schema,
  place: Place,
  direction: Direction,
): unknown {
  const { $ref } = schema;
  const found = findField(place.name, place.owner)?.example;
  const whole = $ref === undefined ? schema : (resolveReference(document, $ref) as Schema);
  const owner = $ref === undefined ? place.owner : $ref.slice(COMPONENT.length);
  const values = [found, ...(whole.examples ?? []), whole.default];
  if (whole.const !== undefined) return whole.const;
  if (whole.enum) return values.find((value) => whole.enum?.includes(value)) ?? whole.enum[0];
  const [alternative] = whole.oneOf ?? whole.anyOf ?? [];
  if (alternative) return buildExample(document, alternative, { ...place, owner }, direction);
  const type = [whole.type].flat()[0];
  if (type === "object" && whole.properties) {
    const { properties, required = [] } = whole;
    const fields = Object.entries(properties).filter(
      ([name]) => direction === "response" || required.includes(name),
    );
    return Object.fromEntries(
      fields.map(([name, field]) => [
        name,
        buildExample(document, field, { name, owner }, direction),
      ]),
    );
  }
  const given = values.find((value) => value !== undefined && hasType(value, type));
  if (given !== undefined) return given;
  if (type === "array") {
    const { items = {} } = whole;
    return [buildExample(document, items, { ...place, owner }, direction)];
  }
  return EXAMPLES_BY_FORMAT[whole.format ?? ""] ?? getDefault(type, whole);
}

function hasType(value: unknown, type: string | undefined): boolean {
  switch (type) {
    case undefined:
      return true;
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "object":
      return isJsonObject(value);
    default:
      return typeof value === type;
  }
}

function getDefault(type: string | undefined, { minimum = 1 }: Schema): unknown {
  switch (type) {
    case "integer":
    case "number":
      return minimum;
    case "boolean":
      return true;
    case "object":
      return {};
    case "null":
      return null;
    default:
      return "example";
  }
}
