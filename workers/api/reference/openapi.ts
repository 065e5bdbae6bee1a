/** The parts of OpenAPI 3.1 that the document uses. */

/** JSON Schema 2020-12. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  propertyNames?: Schema;
  items?: Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  not?: Schema;
  contains?: Schema;
  minContains?: number;
  maxContains?: number;
  maxProperties?: number;
}

interface Reference {
  $ref: string;
}

interface Header {
  description: string;
  required?: boolean;
  schema: Schema;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description: string;
  schema: Schema;
  example?: unknown;
}

interface MediaType {
  schema?: Schema;
  example?: unknown;
}

export type Content = Record<string, MediaType>;

export interface DocumentedResponse {
  description: string;
  headers?: Record<string, Reference>;
  content?: Content;
}

interface RequestBody {
  required: boolean;
  content: Content;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  security: Record<string, string[]>[];
  parameters?: Parameter[];
  requestBody?: RequestBody;
  responses: Record<string, DocumentedResponse | Reference>;
}

/** An operation with its place in the document. */
export interface PlacedOperation {
  method: string;
  path: string;
  operation: Operation;
}

export interface OpenApiDocument {
  openapi: "3.1.0";
  info: { title: string; version: string; description: string; license: object };
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, DocumentedResponse>;
    headers: Record<string, Header>;
    securitySchemes: Record<string, object>;
  };
}

/** References to a schema begin with this; its name follows. */
export const COMPONENT = "#/components/schemas/";

/** @returns the part of the document that a reference within it names. */
export function resolveReference(document: OpenApiDocument, reference: string): unknown {
  let part: unknown = document;
  for (const segment of reference.split("/").slice(1)) {
    const name = segment.replaceAll("~1", "/").replaceAll("~0", "~");
    part = (part as Record<string, unknown>)[name];
  }
  return part;
}
