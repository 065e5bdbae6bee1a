/** Builds the OpenAPI document from the definitions of the routes. */
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { ZodType } from "zod";
import { getDefaultFields, STATUS_BY_CODE, type ErrorCode } from "../../../protocol/errors.ts";
import { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import type { ApiEnv, DocumentedContent, DocumentedRoute } from "../route.ts";
import { ERROR_HELP } from "./error-help.ts";
import { buildExample } from "./examples.ts";
import {
  COMMON_HEADERS,
  listErrorHeaders,
  referToHeaders,
  RESPONSE_HEADERS,
  type ResponseHeader,
} from "./headers.ts";
import type {
  Content,
  DocumentedResponse,
  OpenApiDocument,
  Operation,
  Parameter,
  Schema,
} from "./openapi.ts";
import { FIELDS } from "./fields.ts";
import { SchemaComponents, type Direction } from "./schemas.ts";
import { SECURITY_SCHEMES } from "./security.ts";

/** The routers of one subject. */
export interface Area {
  name: string;
  description: string;
  routers: readonly OpenAPIHono<ApiEnv>[];
}

const DESCRIPTION = `The management API of Underpass: JSON over HTTP.

Every response has the header \`underpass-request-id\`. Every error has the shape of the schema \`Error\`, and its code is also in the header \`underpass-error\`: branch on the code, never on the message. \`/docs#errors\` explains each code.

Unknown fields and parameters are ignored. A body has at most 1 MiB. Lists are sorted newest first; where a list takes \`after\`, the id of the last row leads to the next page.`;

/** Every operation can answer with these. */
const COMMON_FAILURES: readonly ErrorCode[] = [
  "method_not_allowed",
  "payload_too_large",
  "internal",
  "unavailable",
];

/** @param origin where the API is reached, without a slash at its end. */
export function buildDocument(areas: readonly Area[], origin: string): OpenApiDocument {
  const schemas = new SchemaComponents();
  const routes = areas.flatMap(({ name, routers }) =>
    routers.flatMap(listRoutes).map((route) => ({ tag: name, route })),
  );
  // All responses come first, so that their schemas have the plain names.
  const responses = new Map(
    routes.map(({ route }) => [route, describeOwnResponses(schemas, route)]),
  );
  const document: OpenApiDocument = {
    openapi: "3.1.0",
    info: {
      title: "Underpass",
      version: SERVICE_VERSION,
      description: DESCRIPTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: origin }],
    tags: areas.map(({ name, description }) => ({ name, description })),
    paths: {},
    components: {
      schemas: schemas.byName,
      responses: describeErrors(schemas),
      headers: { ...RESPONSE_HEADERS },
      securitySchemes: SECURITY_SCHEMES,
    },
  };
  for (const { tag, route } of routes) {
    const { method, path } = route;
    const operation = describeOperation(schemas, route, tag);
    operation.responses = { ...responses.get(route), ...describeFailures(route) };
    (document.paths[path] ??= {})[method] = operation;
  }
  for (const path of Object.values(document.paths)) {
    for (const operation of Object.values(path)) addExamples(document, operation);
  }
  removeUnused(document);
  return document;
}

function listRoutes({ openAPIRegistry }: OpenAPIHono<ApiEnv>): DocumentedRoute[] {
  return openAPIRegistry.definitions.flatMap((definition) =>
    definition.type === "route" ? [definition.route as unknown as DocumentedRoute] : [],
  );
}

function describeOperation(
  schemas: SchemaComponents,
  route: DocumentedRoute,
  tag: string,
): Operation {
  const { operationId, summary, description, request } = route;
  const parameters = [
    ...describeParameters(schemas, "path", operationId, request.params),
    ...describeParameters(schemas, "query", operationId, request.query),
  ];
  const { body } = request;
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    security: route.security,
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: body.required,
        content: translateContent(schemas, body.content, "request"),
      },
    }),
    responses: {},
  };
}

function describeParameters(
  schemas: SchemaComponents,
  place: Parameter["in"],
  operationId: string,
  shape: ZodType | undefined,
): Parameter[] {
  if (shape === undefined) return [];
  const { properties = {}, required = [] } = schemas.add(shape, "request");
  return Object.entries(properties).map(([name, property]) => {
    const { description = "", ...schema } = property;
    return {
      name,
      in: place,
      required: required.includes(name),
      description: FIELDS[`${operationId}.${name}`]?.description ?? description,
      schema,
    };
  });
}

function translateContent(
  schemas: SchemaComponents,
  content: DocumentedContent,
  direction: Direction,
): Content {
  return Object.fromEntries(
    Object.entries(content).map(([type, { schema, ...media } = {}]) => [
      type,
      { ...media, ...(schema && { schema: schemas.add(schema, direction) }) },
    ]),
  );
}

// ── Responses ──

/** The responses that a route describes itself: its successes, and refusals whose body has more than others. */
function describeOwnResponses(
  schemas: SchemaComponents,
  route: DocumentedRoute,
): Operation["responses"] {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, { description, content }]) => {
      const response = {
        description,
        headers: referToHeaders(listHeaders(route, Number(status))),
        ...(content && { content: translateContent(schemas, content, "response") }),
      };
      return [status, response];
    }),
  );
}

function listHeaders(route: DocumentedRoute, status: number): ResponseHeader[] {
  if (status === 101) return ["Sec-WebSocket-Protocol"];
  return [
    ...COMMON_HEADERS,
    ...route["x-headers"],
    ...(status >= 300 && status < 400 ? (["Location"] as const) : []),
    ...(status >= 400 ? listErrorHeaders([]) : []),
    ...(route["x-sets-cookie"] ? (["Set-Cookie"] as const) : []),
    ...(route["x-error-pages"] ? (["Referrer-Policy"] as const) : []),
  ];
}

/** A component for each error code. */
function describeErrors(schemas: SchemaComponents): Record<string, DocumentedResponse> {
  schemas.add(ErrorBody, "response");
  const codes = Object.keys(STATUS_BY_CODE) as ErrorCode[];
  return Object.fromEntries(codes.map((code) => [code, describeFailure([code])]));
}

function describeFailure(codes: readonly ErrorCode[]): DocumentedResponse {
  const fields = codes.length === 1 ? getDefaultFields(codes[0]!) : undefined;
  const schema: Schema = {
    allOf: [
      { $ref: "#/components/schemas/Error" },
      {
        type: "object",
        properties: { error: { type: "string", enum: [...codes] } },
        ...(fields && { required: ["fields"] }),
      },
    ],
  };
  const [code = "internal"] = codes;
  const example: ErrorBody = { error: code, message: ERROR_HELP[code].meaning, fields };
  return {
    description: codes.map((one) => `\`${one}\`: ${ERROR_HELP[one].meaning}`).join(" "),
    headers: referToHeaders([...COMMON_HEADERS, ...listErrorHeaders(codes)]),
    content: { "application/json": { schema, example } },
  };
}

function describeFailures(route: DocumentedRoute): Operation["responses"] {
  const codes = [...new Set([...route["x-failures"], ...COMMON_FAILURES])];
  const hasOwnForm = route["x-sets-cookie"] || route["x-error-pages"];
  const statuses = [...new Set(codes.map((code) => STATUS_BY_CODE[code]))].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses
      // A route that describes this status itself has another body.
      .filter((status) => !(status in route.responses))
      .map((status): [number, Operation["responses"][string]] => {
        const ofStatus = codes.filter((code) => STATUS_BY_CODE[code] === status);
        if (ofStatus.length === 1 && !hasOwnForm) {
          return [status, { $ref: `#/components/responses/${ofStatus[0]}` }];
        }
        const failure = describeFailure(ofStatus);
        Object.assign(failure.headers!, referToHeaders(listHeaders(route, status)));
        if (route["x-error-pages"]) {
          Object.assign(failure.headers!, referToHeaders(["Content-Security-Policy"]));
          failure.content!["text/html"] = { schema: { type: "string" } };
        }
        return [status, failure];
      }),
  );
}

/** Some errors are only those of tunnels, and some share a status with others wherever they occur. */
function removeUnused({ paths, components: { responses } }: OpenApiDocument): void {
  const text = JSON.stringify(paths);
  for (const name of Object.keys(responses)) {
    if (!text.includes(`"#/components/responses/${name}"`)) delete responses[name];
  }
}

// ── Examples ──

function addExamples(document: OpenApiDocument, operation: Operation): void {
  const { operationId: owner, parameters = [], requestBody, responses } = operation;
  for (const parameter of parameters) {
    const { name, schema } = parameter;
    parameter.example = buildExample(document, schema, { name, owner }, "request");
  }
  for (const media of Object.values(requestBody?.content ?? {})) {
    media.example ??=
      media.schema && buildExample(document, media.schema, { name: "", owner }, "request");
  }
  for (const response of Object.values(responses)) {
    if ("$ref" in response) continue;
    for (const media of Object.values(response.content ?? {})) {
      media.example ??=
        media.schema && buildExample(document, media.schema, { name: "", owner }, "response");
    }
  }
}
