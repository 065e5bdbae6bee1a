/**
 * The dashboard: one HTML page for all of its paths, and the files that it loads; and the npm package of the agent. The files
 * are not in the Worker's bundle: the binding `ASSETS` reads them (hosted: static assets of the platform; self-hosted: a
 * directory).
 */
import { accepts } from "hono/accepts";
import { etag } from "hono/etag";
import { createMiddleware } from "hono/factory";
import { AGENT_PACKAGE_PATH } from "../../../protocol/version.ts";
import { isDashboardPath, type DashboardPath } from "../../../protocol/dashboard-paths.ts";
import { ApiError } from "../../errors.ts";
import { wantsHtml } from "../../html-error-page.ts";
import { createRouter, type ApiContext, type ApiEnv } from "../route.ts";

/** Everything comes from this origin, and no script can turn text into HTML or load a script by a text (Trusted Types). */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const CONTENT_TYPES: Record<string, string> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

export const dashboard = createRouter();

/** Paths of no route of the API, to which mails, redirects and the command line lead: each client gets the page. */
const PAGES_OF_ALL_CLIENTS: DashboardPath[] = [
  "/",
  "/activate",
  "/invitation",
  "/reset",
  "/two-factor",
];

/** The headers that decide whether a client gets a page or the response of the API. */
export const NAVIGATION_HEADERS = "Accept, Authorization, Sec-Fetch-Mode";

/** Serves the page to a browser that opens its path, which can be a route of the API too, such as `/billing`. */
export const servePageToBrowsers = createMiddleware<ApiEnv>(async (c, next) => {
  if (!isRead(c) || !isDashboardPath(c.req.path)) return next();
  if (isNavigation(c)) c.res = await sendDashboardPage(c);
  else await next();
  c.res.headers.append("Vary", NAVIGATION_HEADERS);
});

for (const path of PAGES_OF_ALL_CLIENTS) dashboard.get(path, (c) => sendDashboardPage(c));

/** Names of these files contain a hash of their content. */
dashboard.get("/assets/:file", async (c) => {
  const response = await readFile(c, `/assets/${c.req.param("file")}`);
  response.headers.set("Cache-Control", "public, max-age=31536000, immutable");
  return response;
});

/**
 * The npm package of the agent, for `npm install --global https://…/underpass.tgz`. Its version is that of this server, so a
 * client that has a copy asks whether it is still the same.
 */
dashboard.get(AGENT_PACKAGE_PATH, etag(), async (c) => {
  const [hash, file] = await Promise.all([
    fetchFile(c, `${AGENT_PACKAGE_PATH}.sha256`),
    fetchFile(c, AGENT_PACKAGE_PATH),
  ]);
  const headers = { "Cache-Control": "no-cache", "Content-Type": "application/gzip" };
  return createFileResponse(file, new Headers({ ...headers, ETag: `"${await hash.text()}"` }));
});

/**
 * Browsers name HTML first, and so does Java's HttpURLConnection: a request with a credential is one of a program. Requests of
 * scripts in a page are not navigations either.
 */
export function isNavigation(c: ApiContext): boolean {
  if (!isRead(c)) return false;
  if (c.req.header("authorization") !== undefined) return false;
  if ((c.req.header("sec-fetch-mode") ?? "navigate") !== "navigate") return false;
  return wantsHtml(c.req.raw);
}

function isRead({ req: { method } }: ApiContext): boolean {
  return method === "GET" || method === "HEAD";
}

/** @param status 404 for a path without a page: the dashboard says so, with a link to its overview. */
export async function sendDashboardPage(c: ApiContext, status = 200): Promise<Response> {
  const response = await readFile(c, "/index.html", status);
  response.headers.set("Content-Security-Policy", CONTENT_SECURITY_POLICY);
  response.headers.set("Cross-Origin-Opener-Policy", "same-origin");
  response.headers.set("Referrer-Policy", "no-referrer");
  return response;
}

/**
 * The build has compressed each file: if the runtime did it for each response, a few requests a second for a large file
 * would occupy it. @throws ApiError `not_found`
 */
async function readFile(c: ApiContext, path: string, status = 200): Promise<Response> {
  const type = /^\/(?:assets\/)?[\w-]+(?:\.[\w-]+)*\.(\w+)$/.exec(path)?.[1] ?? "";
  const contentType = CONTENT_TYPES[type];
  if (contentType === undefined) throw fileNotFound();
  const encoding = chooseEncoding(c);
  const suffix = encoding === "identity" ? "" : SUFFIXES[encoding];
  const file = await fetchFile(c, path + suffix);
  const headers = new Headers({ "Content-Type": contentType, Vary: "Accept-Encoding" });
  if (encoding !== "identity") headers.set("Content-Encoding", encoding);
  return createFileResponse(file, headers, status);
}

/** @throws ApiError `not_found` */
async function fetchFile(c: ApiContext, path: string): Promise<Response> {
  const file = await c.env.ASSETS.fetch(new URL(path, "https://assets.invalid"));
  if (file.status === 200) return file;
  await file.body?.cancel();
  throw fileNotFound();
}

function createFileResponse(file: Response, headers: Headers, status = 200): Response {
  const length = file.headers.get("content-length");
  if (length !== null) headers.set("Content-Length", length);
  return new Response(file.body, { status, headers, encodeBody: "manual" });
}

/** The suffixes of the compressed copies' names, the best one first. Browsers accept Brotli only over HTTPS and from localhost. */
const SUFFIXES = { br: ".br", gzip: ".gz" } as const;
const ENCODINGS = Object.keys(SUFFIXES) as (keyof typeof SUFFIXES)[];

function chooseEncoding(c: ApiContext): keyof typeof SUFFIXES | "identity" {
  const encoding = accepts(c, {
    header: "Accept-Encoding",
    supports: ENCODINGS,
    default: "identity",
    match: (accepted, { default: otherwise }) =>
      ENCODINGS.find((name) => accepted.some(({ type, q }) => type === name && q > 0)) ?? otherwise,
  });
  return ENCODINGS.find((name) => name === encoding) ?? "identity";
}

function fileNotFound(): ApiError {
  return new ApiError("not_found", "There is no file at this path.");
}
