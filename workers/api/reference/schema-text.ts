/** Schemas as short texts for people. */
import type { Schema } from "./openapi.ts";

/** `string`, `array of Tunnel`, `Instant or null`. */
export function formatType(schema: Schema): string {
  const { $ref, type, items, enum: values, oneOf, anyOf, allOf, additionalProperties } = schema;
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf("/") + 1);
  const alternatives = oneOf ?? anyOf;
  if (alternatives) return [...new Set(alternatives.map(formatType))].join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (values) return values.map((value) => JSON.stringify(value)).join(" or ");
  const [base] = allOf ?? [];
  if (base && type === undefined) return formatType(base);
  const types = [type ?? "any"].flat();
  return types
    .map((one) => {
      if (one === "array") return `array of ${formatType(items ?? {})}`;
      if (one !== "object" || schema.properties || typeof additionalProperties !== "object")
        return one;
      return `object of ${formatType(additionalProperties)}`;
    })
    .join(" or ");
}

/** The limits of a value, each as a few words. */
export function listRules(schema: Schema): string[] {
  const { minLength, maxLength, minItems, maxItems } = schema;
  const rules = [
    schema.format === undefined ? "" : `format ${schema.format}`,
    formatRange(schema.minimum, schema.maximum, ""),
    formatRange(minLength, maxLength, "characters"),
    formatRange(minItems, maxItems, "items"),
    ...[schema, ...(schema.allOf ?? [])].map(({ pattern }) =>
      pattern === undefined ? "" : `pattern \`${pattern}\``,
    ),
    schema.default === undefined ? "" : `default \`${JSON.stringify(schema.default)}\``,
  ];
  return rules.filter((rule) => rule !== "");
}

function formatRange(least: number | undefined, most: number | undefined, unit: string): string {
  if (least === undefined && most === undefined) return "";
  if (least === undefined) return `at most ${most} ${unit}`.trim();
  if (most === undefined) return `at least ${least} ${unit}`.trim();
  return `${least} to ${most} ${unit}`.trim();
}
