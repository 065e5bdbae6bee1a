/** /docs: the document as a page. It works without its script, which only adds the search field. */
import template from "../../../dashboard/reference/reference.html";
import { STATUS_BY_CODE, type ErrorCode } from "../../../protocol/errors.ts";
import { escapeHtml } from "../../../shared/text/escape-html.ts";
import { formatInlineCode } from "../../html-error-page.ts";
import { buildContentSecurityPolicy } from "./content-security-policy.ts";
import { formatCurlLine } from "./curl.ts";
import { ERROR_HELP } from "./error-help.ts";
import {
  resolveReference,
  type Content,
  type DocumentedResponse,
  type OpenApiDocument,
  type Operation,
  type Parameter,
  type PlacedOperation,
  type Schema,
} from "./openapi.ts";
import { formatType, listRules } from "./schema-text.ts";

interface Page {
  html: string;
  /** Its content security policy. */
  policy: string;
}

export async function renderReference(document: OpenApiDocument): Promise<Page> {
  const policy = await buildContentSecurityPolicy(template);
  const body = renderNavigation(document) + renderMain(document);
  // A function, because a replacement text would give `$` a meaning.
  return { html: template.replace("<body>", () => `<body>${body}`), policy };
}

const toId = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");

function renderText(text: string): string {
  return formatInlineCode(escapeHtml(text));
}

function renderParagraphs(text: string): string {
  return text
    .split("\n\n")
    .map((paragraph) => `<p>${renderText(paragraph)}</p>`)
    .join("");
}

function renderJson(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return `<pre><code>${escapeHtml(text)}</code></pre>`;
}

function renderTable(head: string[], rows: string[][]): string {
  const cells = (row: string[], tag: "th" | "td") =>
    `<tr>${row.map((cell) => `<${tag}>${cell}</${tag}>`).join("")}</tr>`;
  const body = rows.map((row) => cells(row, "td")).join("");
  return `<div class="scroll"><table><thead>${cells(head, "th")}</thead><tbody>${body}</tbody></table></div>`;
}

function listEntries({ paths }: OpenApiDocument, tag: string): PlacedOperation[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, operation]) =>
      operation.tags.includes(tag) ? [{ method, path, operation }] : [],
    ),
  );
}

// ── Navigation ──

function renderNavigation(document: OpenApiDocument): string {
  const groups = document.tags.map(({ name }) => {
    const links = listEntries(document, name).map(({ method, operation }) => {
      const { operationId, summary } = operation;
      return `<li data-for="${operationId}"><a href="#${operationId}"><span class="method ${method}">${method.toUpperCase()}</span> ${escapeHtml(summary)}</a></li>`;
    });
    return renderGroup(toId(name), name, links);
  });
  const schemas = Object.keys(document.components.schemas)
    .sort()
    .map((name) => `<li data-for="schema-${name}"><a href="#schema-${name}">${name}</a></li>`);
  const errors = Object.keys(STATUS_BY_CODE).map(
    (code) => `<li data-for="errors-${code}"><a href="#errors-${code}">${code}</a></li>`,
  );
  return `<nav aria-label="Contents"><p class="brand">Underpass API</p><div hidden><label for="search">Search</label><input type="search" id="search" autocomplete="off"><div id="found" role="status"></div></div>${groups.join("")}${renderGroup("schemas", "Schemas", schemas)}${renderGroup("errors", "Errors", errors)}</nav>`;
}

function renderGroup(id: string, name: string, links: string[]): string {
  return `<details data-for="${id}"><summary><a href="#${id}">${escapeHtml(name)}</a></summary><ul>${links.join("")}</ul></details>`;
}

// ── Contents ──

function renderMain(document: OpenApiDocument): string {
  const { info, tags, components } = document;
  const areas = tags.map(({ name, description }) => {
    const entries = listEntries(document, name).map((entry) => renderOperation(document, entry));
    return `<section id="${toId(name)}"><h2>${escapeHtml(name)}</h2>${renderParagraphs(description)}${entries.join("")}</section>`;
  });
  const schemas = Object.entries(components.schemas)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, schema]) => renderComponent(name, schema));
  return `<main><h1>API reference</h1><p class="note">Version ${escapeHtml(info.version)} · <a href="/openapi.json">openapi.json</a></p>${renderParagraphs(info.description)}${renderCredentials(document)}${areas.join("")}<section id="schemas"><h2>Schemas</h2>${schemas.join("")}</section>${renderErrors()}</main>`;
}

function renderCredentials({ components }: OpenApiDocument): string {
  const rows = Object.entries(components.securitySchemes).map(([name, scheme]) => [
    `<code id="credential-${name}">${name}</code>`,
    renderText((scheme as { description: string }).description),
  ]);
  return `<section id="credentials"><h2>Credentials</h2>${renderTable(["Name", "Meaning"], rows)}</section>`;
}

function renderOperation(document: OpenApiDocument, entry: PlacedOperation): string {
  const { method, path, operation } = entry;
  const { operationId, summary, description, parameters = [], requestBody } = operation;
  const parts = [
    `<h3><a href="#${operationId}">${escapeHtml(summary)}</a></h3>`,
    `<p class="request"><span class="method ${method}">${method.toUpperCase()}</span> ${escapeHtml(path)}</p>`,
    renderParagraphs(description),
    renderSecurity(operation),
    parameters.length > 0 ? renderParameters(parameters) : "",
    requestBody ? renderBody(requestBody.content, requestBody.required) : "",
    `<h4>Example</h4>${renderJson(formatCurlLine(document, entry))}`,
    "<h4>Responses</h4>",
    ...Object.entries(operation.responses).map(([status, response]) =>
      renderResponse(document, status, response),
    ),
  ];
  return `<article id="${operationId}">${parts.join("")}</article>`;
}

function renderSecurity({ security }: Operation): string {
  if (security.length === 0) return `<p class="note">No credential is required.</p>`;
  const names = security.flatMap((scheme) => Object.keys(scheme));
  const links = names.map((name) => `<a href="#credential-${name}">${name}</a>`);
  return `<p class="note">Credential: ${links.join(" or ")}</p>`;
}

function renderParameters(parameters: Parameter[]): string {
  const rows = parameters.map(({ name, in: place, required, description, schema }) =>
    renderField(name, schema, required, `${description} In the ${place}.`),
  );
  return `<h4>Parameters</h4>${renderTable(["Name", "Type", "Meaning"], rows)}`;
}

function renderField(
  name: string,
  schema: Schema,
  isRequired: boolean,
  description: string,
): string[] {
  const rules = listRules(schema).map(renderText).join(", ");
  return [
    `<code>${escapeHtml(name)}</code>${isRequired ? ` <span class="required">required</span>` : ""}`,
    renderType(schema),
    `${renderText(description)}${rules === "" ? "" : `<br><span class="note">${rules}</span>`}`,
  ];
}

/** The names of components in it become links. */
function renderType(schema: Schema): string {
  return escapeHtml(formatType(schema)).replaceAll(
    /\b[A-Z]\w+/g,
    (name) => `<a href="#schema-${name}">${name}</a>`,
  );
}

function renderBody(content: Content, isRequired: boolean): string {
  const parts = Object.entries(content).map(([type, { schema }]) => {
    const label = schema ? renderType(schema) : "any bytes";
    return `<p><code>${escapeHtml(type)}</code> ${label}</p>`;
  });
  return `<h4>Body${isRequired ? "" : " (optional)"}</h4>${parts.join("")}`;
}

function renderResponse(
  document: OpenApiDocument,
  status: string,
  response: Operation["responses"][string],
): string {
  const { description, content = {} } =
    "$ref" in response
      ? (resolveReference(document, response.$ref) as DocumentedResponse)
      : response;
  const bodies = Object.entries(content).map(([type, { schema, example }]) => {
    const label = schema ? renderType(schema) : "";
    return `<p><code>${escapeHtml(type)}</code> ${label}</p>${example === undefined ? "" : renderJson(example)}`;
  });
  const isError = Number(status) >= 400;
  const text = isError ? linkErrors(renderText(description)) : renderText(description);
  if (bodies.length === 0 || isError) return `<p><code>${status}</code> ${text}</p>`;
  return `<details><summary><code>${status}</code> ${text}</summary>${bodies.join("")}</details>`;
}

function linkErrors(html: string): string {
  return html.replaceAll(/<code>(\w+)<\/code>/g, (code, name: string) =>
    Object.hasOwn(STATUS_BY_CODE, name) ? `<a href="#errors-${name}">${code}</a>` : code,
  );
}

function renderComponent(name: string, schema: Schema): string {
  const { properties = {}, required = [], description = "" } = schema;
  const rows = Object.entries(properties).map(([field, property]) =>
    renderField(field, property, required.includes(field), property.description ?? ""),
  );
  const rules = listRules(schema).map(renderText).join(", ");
  const whole = rows.length > 0 ? renderTable(["Field", "Type", "Meaning"], rows) : "";
  const type = rows.length > 0 ? "" : `<p>${renderType(schema)}</p>`;
  return `<article id="schema-${name}"><h3><a href="#schema-${name}">${name}</a></h3>${renderParagraphs(description)}${type}${rules === "" ? "" : `<p class="note">${rules}</p>`}${whole}</article>`;
}

function renderErrors(): string {
  const articles = (Object.entries(STATUS_BY_CODE) as [ErrorCode, number][]).map(
    ([code, status]) => {
      const { meaning, action } = ERROR_HELP[code];
      return `<article id="errors-${code}"><h3><a href="#errors-${code}"><code>${code}</code></a> <span class="note">${status}</span></h3><p>${renderText(meaning)}</p><p>${renderText(action)}</p></article>`;
    },
  );
  return `<section id="errors"><h2>Errors</h2><p>Every error has a code, in its body and in the header <code>underpass-error</code>. Responses of tunnels have these codes too when the service made them, and not the local server.</p>${articles.join("")}</section>`;
}
