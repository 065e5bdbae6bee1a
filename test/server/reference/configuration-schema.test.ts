/** The JSON Schema of underpass.yml, which editors load from the server. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";
import { startApi, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

test("the server has the schema that the agent's package contains, without a login", async () => {
  const response = await fetch(`${api.server.url}/schemas/underpass.json`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/schema+json");
  const packaged = await readFile(join(ROOT, "agent/underpass.schema.json"), "utf8");
  expect(await response.json()).toEqual(JSON.parse(packaged));
});
