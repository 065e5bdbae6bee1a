/** /openapi.json and /docs: the document of the API, for programs and for people; and the schema of the agent's file. */
import { z } from "zod";
import type { OpenAPIHono } from "@hono/zod-openapi";
import { sendReferencePage } from "./content-security-policy.ts";
import {
  createRouter,
  documentRoute,
  jsonResponse,
  type ApiContext,
  type ApiEnv,
} from "../route.ts";
import type { Area } from "./document.ts";

/**
 * What builds the document and its page is loaded when one of them is first requested, so that other requests do not
 * wait for it.
 */
export function createReference(getAreas: () => readonly Area[]): OpenAPIHono<ApiEnv> {
  const reference = createRouter();
  const load = async (c: ApiContext) => {
    const { buildDocument } = await import("./document.ts");
    return buildDocument(getAreas(), c.var.config.publicOrigin);
  };
  const render = async (c: ApiContext) => {
    const { renderReference } = await import("./page.ts");
    return renderReference(await load(c));
  };
  // Results and not promises: one that fails, or whose request is canceled, must not decide for all later requests.
  let json: string | undefined;
  let page: Awaited<ReturnType<typeof render>> | undefined;

  documentRoute(reference, {
    operationId: "getOpenApiDocument",
    method: "get",
    path: "/openapi.json",
    summary: "Get this document",
    description: "OpenAPI 3.1, generated from the schemas that validate requests.",
    responses: { 200: jsonResponse("The document.", z.looseObject({ openapi: z.string() })) },
  });
  reference.get("/openapi.json", async (c) => {
    json ??= JSON.stringify(await load(c));
    return c.body(json, 200, { "Content-Type": "application/json" });
  });

  documentRoute(reference, {
    operationId: "getReference",
    method: "get",
    path: "/docs",
    summary: "Read this document in a browser",
    description: "A page that loads nothing else, with every operation, schema and error code.",
    headers: ["Content-Security-Policy", "Cross-Origin-Opener-Policy", "Referrer-Policy"],
    responses: {
      200: { description: "The page.", content: { "text/html": { schema: z.string() } } },
    },
  });
  reference.get("/docs", async (c) => {
    page ??= await render(c);
    const { html, policy } = page;
    return sendReferencePage(c, html, policy);
  });

  documentRoute(reference, {
    operationId: "getConfigurationSchema",
    method: "get",
    path: "/schemas/underpass.json",
    summary: "Get the JSON Schema of underpass.yml",
    description:
      "JSON Schema 2020-12, with which editors complete and check the file of `underpass start`.",
    responses: {
      200: {
        description: "The schema.",
        content: { "application/schema+json": { schema: z.looseObject({ $schema: z.string() }) } },
      },
    },
  });
  reference.get("/schemas/underpass.json", async (c) => {
    const { default: schema } = await import("../../../agent/underpass.schema.json", {
      with: { type: "json" },
    });
    const text = `${JSON.stringify(schema, null, 2)}\n`;
    return c.body(text, 200, { "Content-Type": "application/schema+json" });
  });
  return reference;
}
