/**
 * The contract of the API is its OpenAPI document. Every response that a test receives is compared with it, so that the
 * service cannot answer with a status, a header, a content type or a field that the document does not have.
 */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import {
  resolveReference,
  type DocumentedResponse,
  type OpenApiDocument,
  type Operation,
  type Schema,
} from "../../../workers/api/reference/openapi.ts";

export interface Exchange {
  method: string;
  /** With its query. */
  path: string;
  /** The text of the request body, if there was one. */
  sent: string | undefined;
  status: number;
  headers: Headers;
  /** Parsed where it is JSON. */
  body: unknown;
}

/** Pages for browsers, which are not operations of the API. */
const PAGES = new Set([
  "/",
  "/activate",
  "/invitation",
  "/reset",
  "/two-factor",
  "/billing/mock/checkout",
  "/billing/mock/portal",
]);

/** They belong to the connection or to the representation, and every HTTP server may send them. */
const HEADERS_OF_HTTP = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "date",
  "keep-alive",
  "transfer-encoding",
]);

/** A chat app would show a response body to the user, so deliveries to such a receiver are answered without one. */
const MAY_BE_EMPTY = new Set(["deliverWebhook"]);

export class Contract {
  readonly #document: OpenApiDocument;
  /** Refuses fields that the document does not have: those of responses. */
  readonly #closed: Ajv2020;
  /** Ignores them, as the service does in requests. */
  readonly #open: Ajv2020;
  readonly #paths: { pattern: RegExp; path: string }[];

  constructor(document: OpenApiDocument) {
    this.#document = document;
    this.#open = createValidator(document);
    const closed = structuredClone(document);
    for (const schema of listSchemas(closed)) close(schema);
    this.#closed = createValidator(closed);
    this.#paths = Object.keys(document.paths)
      // A path without parameters takes precedence.
      .sort((one, other) => one.split("{").length - other.split("{").length)
      .map((path) => ({ path, pattern: toPattern(path) }));
  }

  /** @returns how an exchange violates the document; empty when it does not. */
  findViolations(exchange: Exchange): string[] {
    const { pathname } = new URL(exchange.path, "http://api.test");
    if (PAGES.has(pathname)) return [];
    const method = exchange.method === "HEAD" ? "get" : exchange.method.toLowerCase();
    const path = this.#paths.find(({ pattern }) => pattern.test(pathname))?.path;
    const operation = path === undefined ? undefined : this.#document.paths[path]?.[method];
    if (path === undefined || operation === undefined) return this.#checkUnknown(exchange, path);
    const response = operation.responses[exchange.status];
    if (response === undefined) {
      return [`${operation.operationId} does not declare the status ${exchange.status}`];
    }
    const pointer =
      "$ref" in response
        ? response.$ref
        : `#/paths/${escapePointer(path)}/${method}/responses/${exchange.status}`;
    return [
      ...this.#checkRequest(exchange, operation, `#/paths/${escapePointer(path)}/${method}`),
      ...this.#checkResponse(exchange, pointer, operation.operationId),
    ];
  }

  /** A path or a method that the document does not have is refused as such. */
  #checkUnknown(exchange: Exchange, path: string | undefined): string[] {
    const code = exchange.headers.get("underpass-error") ?? "";
    const expected = path === undefined ? "not_found" : "method_not_allowed";
    // The body is read before the path is looked up.
    if (code !== expected && code !== "payload_too_large") {
      return [`the document has no ${exchange.method} ${exchange.path}`];
    }
    return this.#checkResponse(exchange, `#/components/responses/${code}`, "");
  }

  #checkRequest({ sent, status }: Exchange, { requestBody }: Operation, pointer: string): string[] {
    const content = requestBody?.content["application/json"];
    if (status >= 300 || !requestBody || !content?.schema) return [];
    if (sent === undefined || sent === "") {
      return requestBody.required ? ["a request without its required body was accepted"] : [];
    }
    const schema = `${pointer}/requestBody/content/application~1json/schema`;
    return this.#validate(this.#open, schema, JSON.parse(sent)).map(
      (problem) => `a request was accepted whose body ${problem}`,
    );
  }

  #checkResponse(exchange: Exchange, pointer: string, operationId: string): string[] {
    const { content, headers } = resolveReference(this.#document, pointer) as DocumentedResponse;
    const problems = this.#checkHeaders(exchange.headers, headers ?? {});
    const type = exchange.headers.get("content-type")?.split(";")[0] ?? "";
    if (type === "") {
      const isEmpty = exchange.method === "HEAD" || MAY_BE_EMPTY.has(operationId);
      return content && !isEmpty ? [...problems, "the response has no body"] : problems;
    }
    const media = content?.[type];
    if (!media) return [...problems, `the content type ${type} is not declared`];
    if (!media.schema || type !== "application/json" || exchange.method === "HEAD") return problems;
    const schema = `${pointer}/content/${escapePointer(type)}/schema`;
    return [...problems, ...this.#validate(this.#closed, schema, exchange.body)];
  }

  #checkHeaders(headers: Headers, declared: NonNullable<DocumentedResponse["headers"]>): string[] {
    const names = new Set(Object.keys(declared).map((name) => name.toLowerCase()));
    const undeclared = [...headers.keys()].filter(
      (name) => !HEADERS_OF_HTTP.has(name) && !names.has(name),
    );
    const missing = Object.entries(declared).filter(([name, { $ref }]) => {
      const { required } = resolveReference(this.#document, $ref) as { required?: boolean };
      return required === true && !headers.has(name);
    });
    return [
      ...undeclared.map((name) => `the header ${name} is not declared`),
      ...missing.map(([name]) => `the header ${name} is missing`),
    ];
  }

  /** @param pointer to the schema. Validators are compiled when they are first used. */
  #validate(validator: Ajv2020, pointer: string, value: unknown): string[] {
    const key = `document${pointer}`;
    const validate: ValidateFunction = validator.getSchema(key) ?? validator.compile({ $ref: key });
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message = "", params }) =>
        `${instancePath || "itself"} ${message} ${JSON.stringify(params)}`,
    );
  }
}

function createValidator(document: OpenApiDocument): Ajv2020 {
  // The document has keywords of OpenAPI beside its schemas.
  const validator = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
  addFormats(validator);
  return validator.addSchema(document, "document");
}

const escapePointer = (text: string) => text.replaceAll("~", "~0").replaceAll("/", "~1");

function toPattern(path: string): RegExp {
  const parts = path.split(/\{\w+\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^/]+")}$`);
}

function listSchemas({ paths, components }: OpenApiDocument): Schema[] {
  const responses = Object.values(paths)
    .flatMap((operations) => Object.values(operations))
    .flatMap(({ responses }) => Object.values(responses));
  const contents = responses.flatMap((response) =>
    "$ref" in response ? [] : Object.values(response.content ?? {}),
  );
  return [...Object.values(components.schemas), ...contents.flatMap(({ schema }) => schema ?? [])];
}

/** Refuses unknown properties of every object with properties. Parts of `allOf` describe the same object. */
function close(schema: Schema): void {
  const { properties, items, additionalProperties, oneOf, anyOf } = schema;
  if (properties && additionalProperties === undefined) schema.additionalProperties = false;
  const parts = [...Object.values(properties ?? {}), ...(oneOf ?? []), ...(anyOf ?? [])];
  if (items) parts.push(items);
  if (typeof additionalProperties === "object") parts.push(additionalProperties);
  for (const part of parts) close(part);
}
