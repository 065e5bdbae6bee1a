/** The document of the API, which an isolate builds once. */
import { OpenAPIHono } from "@hono/zod-openapi";
import { expect, test } from "vitest";
import { createReference } from "../../workers/api/reference/routes.ts";
import type { ApiEnv } from "../../workers/api/route.ts";
import type { Config } from "../../workers/config/config.ts";

test("the document is built again after a failure", async () => {
  let failures = 1;
  const reference = createReference(() => {
    if (failures-- > 0) throw new Error("the first attempt fails");
    return [];
  });
  const app = new OpenAPIHono<ApiEnv>();
  app.use(async (c, next) => {
    c.set("config", { publicOrigin: "https://underpass.example" } as Config);
    await next();
  });
  app.route("/", reference);
  app.onError((_, c) => c.text("failed", 500));
  const statuses = [];
  for (let request = 0; request < 2; request++)
    statuses.push((await app.request("/openapi.json")).status);
  expect(statuses).toEqual([500, 200]);
});
