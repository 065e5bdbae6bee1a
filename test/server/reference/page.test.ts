/** /docs: the document as a page, which loads nothing else. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { STATUS_BY_CODE } from "../../../protocol/errors.ts";
import { startApi, type TestApi } from "../../harness/server/api.ts";
import { readRoutes } from "../../harness/server/routes.ts";

let api: TestApi;
let page: string;
let policy: string;
beforeAll(async () => {
  api = await startApi();
  const reply = await api.anonymous.get<string>("/docs");
  page = reply.body;
  policy = reply.headers.get("content-security-policy") ?? "";
});
afterAll(() => api.stop());

test("has an anchor for every operation, and for every error code", async () => {
  const ids = (await readRoutes(api)).map(({ operationId }) => operationId);
  const codes = Object.keys(STATUS_BY_CODE).map((code) => `errors-${code}`);
  for (const id of [...ids, ...codes]) expect(page).toContain(`<article id="${id}">`);
});

test("every link inside of it leads to a part of it", () => {
  const targets = [...page.matchAll(/href="([^"]*)"/g)].map(([, target]) => target!);
  for (const target of new Set(targets)) {
    if (target === "/openapi.json") continue;
    expect(target).toMatch(/^#/);
    expect(page).toContain(` id="${target.slice(1)}"`);
  }
});

test("allows its one script and its one style by their hashes, and loads nothing", () => {
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  expect(page).not.toMatch(/ src=| on\w+="| style="|@import|url\(/);
  for (const element of ["script", "style"]) {
    const elements = [...page.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, "gs"))];
    expect(elements).toHaveLength(1);
    const hash = createHash("sha256").update(elements[0]![1]!).digest("base64");
    expect(policy).toContain(`${element}-src 'sha256-${hash}'`);
  }
});
