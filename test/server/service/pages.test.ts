/** The files of the dashboard: the protections in their headers, which hold before any script runs. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DASHBOARD_PATHS } from "../../../protocol/dashboard-paths.ts";
import { AGENT_PACKAGE } from "../../../self-host/build/agent-package.ts";
import { DASHBOARD_DIR } from "../../../self-host/build/dashboard.ts";
import { startApi, type TestApi } from "../../harness/server/api.ts";

const BROWSER = {
  accept: "text/html,application/xhtml+xml,*/*;q=0.8",
  "sec-fetch-mode": "navigate",
};

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api?.stop());

/** Without the decompression of `fetch`. @param host the host of a tunnel; by default the service's own. */
async function open(path: string, headers: Record<string, string> = {}, host?: string) {
  const url = new URL(path, api.server.url);
  const response = await request(url, { headers: { ...headers, ...(host && { host }) } });
  const body = Buffer.from(await response.body.arrayBuffer());
  return { status: response.statusCode, headers: response.headers, body };
}

describe.each(DASHBOARD_PATHS)("%s", (pattern) => {
  const path = pattern.replace(":id", crypto.randomUUID());

  test("is the dashboard for a browser, loads only its own files, cannot be framed, and is not cached", async () => {
    const { status, body, headers } = await open(path, BROWSER);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      vary: "Accept-Encoding, Accept, Authorization, Sec-Fetch-Mode",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "x-content-type-options": "nosniff",
    });
    const policy = String(headers["content-security-policy"]).split("; ");
    expect(policy).toEqual([
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
    ]);
    const html = body.toString();
    const loaded = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url);
    expect(loaded.length).toBeGreaterThan(2);
    expect(loaded.filter((url) => !/^\/assets\/[\w.-]+$/.test(url))).toEqual([]);
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style="| on\w+=/);
  });
});

test("a program gets the response of the API at a path that is also a page", async () => {
  for (const accept of ["", "*/*", "application/json"]) {
    expect(await open("/billing", { accept })).toMatchObject({ status: 401 });
  }
  const ofScript = { accept: "text/html", "sec-fetch-mode": "cors" };
  expect(await open("/billing", ofScript)).toMatchObject({ status: 401 });
  expect(await open(`/tunnels/${crypto.randomUUID()}`)).toMatchObject({ status: 405 });
  expect(await open("/members")).toMatchObject({ status: 404 });
});

test("a path without a page or a route is a page with status 404 for a browser, and JSON for a program", async () => {
  for (const path of ["/nonexistent", "/tunnels/a/b"]) {
    const page = await open(path, BROWSER);
    expect(page).toMatchObject({
      status: 404,
      headers: {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": expect.stringContaining("default-src 'none'"),
        vary: "Accept-Encoding, Accept, Authorization, Sec-Fetch-Mode",
      },
    });
    const { status, body, headers } = await open(path, { accept: "*/*" });
    expect([status, JSON.parse(body.toString()).error]).toEqual([404, "not_found"]);
    expect(headers.vary).toBe("Accept, Authorization, Sec-Fetch-Mode");
  }
});

test("a program that names HTML too gets the response of the API, which depends on these headers", async () => {
  const owner = await api.owner();
  const ofJava = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2";
  const jsonFirst = ["application/json, text/html;q=0.1", "text/html;q=0.5, application/json"];
  for (const accept of [ofJava, ...jsonFirst]) {
    const reply = await owner.send("GET", "/tunnels", { headers: { accept } });
    expect([reply.status, reply.body]).toEqual([200, []]);
    expect(reply.headers.get("vary")).toBe("Accept, Authorization, Sec-Fetch-Mode");
    expect(reply.headers.get("cache-control")).toBe("no-store");
  }
  for (const accept of [...jsonFirst, "*/*, text/html"]) {
    const refused = await open("/tunnels", { accept });
    expect(refused.status).toBe(401);
    expect(refused.headers.vary).toBe("Accept, Authorization, Sec-Fetch-Mode");
  }
  expect(await open("/tunnels", { accept: ofJava })).toMatchObject({ status: 200 });
});

test("each file has its type, is compressed for clients that accept it, and is cached for good", async () => {
  const names = await readdir(join(DASHBOARD_DIR, "assets"));
  const types = {
    css: "text/css; charset=utf-8",
    js: "text/javascript; charset=utf-8",
    svg: "image/svg+xml",
  };
  for (const name of names.filter((each) => !/\.(?:br|gz)$/.test(each))) {
    const plain = await open(`/assets/${name}`);
    const compressed = await open(`/assets/${name}`, { "accept-encoding": "gzip, br" });
    const type = types[name.slice(name.lastIndexOf(".") + 1) as keyof typeof types];
    expect(plain).toMatchObject({
      status: 200,
      headers: { "content-type": type, "cache-control": "public, max-age=31536000, immutable" },
    });
    expect(plain.headers["content-encoding"]).toBeUndefined();
    expect(compressed).toMatchObject({
      status: 200,
      headers: { "content-type": type, "content-encoding": "br", vary: "Accept-Encoding" },
    });
    expect(brotliDecompressSync(compressed.body).equals(plain.body)).toBe(true);
    const withGzip = await open(`/assets/${name}`, { "accept-encoding": "gzip, br;q=0" });
    // Compressed by the build: the server would spend 15 ms on it for each request.
    const stored = await readFile(join(DASHBOARD_DIR, "assets", `${name}.gz`));
    expect(withGzip.headers).toMatchObject({
      "content-encoding": "gzip",
      "content-length": String(stored.length),
    });
    expect(gunzipSync(withGzip.body).equals(plain.body)).toBe(true);
  }
});

test.each([
  "nothing.js",
  "..%2findex.html",
  "",
  "index.html",
  "x.js.br",
  "x.js.gz",
  ".vite",
  "a.exe",
])("/assets/%s is not a file", async (name) => {
  const { status, body } = await open(`/assets/${name}`, { "accept-encoding": "br" });
  expect(status).toBe(404);
  expect(JSON.parse(body.toString())).toMatchObject({ error: "not_found" });
});

test("serves the npm package of the agent, which a client that has it does not download again", async () => {
  const content = await readFile(AGENT_PACKAGE);
  const { status, headers, body } = await open("/underpass.tgz", { "accept-encoding": "gzip, br" });
  expect([status, body.equals(content)]).toEqual([200, true]);
  expect(headers).toMatchObject({
    "content-type": "application/gzip",
    "content-length": String(content.length),
    "cache-control": "no-cache",
  });
  expect(headers).not.toHaveProperty("content-encoding");
  const again = await open("/underpass.tgz", { "if-none-match": String(headers.etag) });
  expect([again.status, again.body.length]).toEqual([304, 0]);
  expect(await open("/underpass.tgz", { "if-none-match": '"other"' })).toMatchObject({
    status: 200,
    headers: { etag: headers.etag },
  });
});

test("the host of a tunnel never answers with files of the dashboard", async () => {
  const [name] = await readdir(join(DASHBOARD_DIR, "assets"));
  const { host } = new URL(api.server.tunnelUrl(`no-dashboard-${Date.now()}`));
  for (const path of ["/", "/billing", `/assets/${name}`, "/index.html", "/underpass.tgz"]) {
    const { status, headers } = await open(path, BROWSER, host);
    expect(status).toBe(404);
    expect(headers["underpass-error"]).toBe("tunnel_not_found");
  }
});

test("a page supports only GET", async () => {
  const { status, headers } = await api.anonymous.post("/");
  expect(status).toBe(405);
  expect(headers.get("allow")).toBe("GET, HEAD");
});
