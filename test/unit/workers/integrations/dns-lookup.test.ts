/** How long a look-up waits for a resolver. The limit of five seconds is shortened. */
import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Config } from "../../../../workers/config/config.ts";
import type { Env } from "../../../../workers/env.ts";
import { lookUpTxtRecords } from "../../../../workers/integrations/dns/lookup.ts";
import { startResolver, type Resolver } from "../../../harness/fakes/resolver.ts";
import { shortenTimeouts } from "../../../harness/short-timeouts.ts";

const NAME = "_svc-challenge.shop.example";

let resolver: Resolver;
beforeAll(async () => {
  resolver = await startResolver();
  resolver.records[NAME] = ["token"];
});
afterAll(() => resolver[Symbol.asyncDispose]());

const lookUp = () =>
  lookUpTxtRecords({} as Env, { DNS_OVER_HTTPS_URL: resolver.url } as Config, NAME);

test.each<[string, (response: ServerResponse) => unknown]>([
  ["never answers", () => undefined],
  [
    "never ends its answer",
    (response) => response.writeHead(200, { "content-type": "application/dns-message" }).write("x"),
  ],
])("a look-up is inconclusive after five seconds when the resolver %s", async (_, answer) => {
  using timeouts = shortenTimeouts(20);
  using warn = vi.spyOn(console, "warn").mockReturnValue();
  resolver.override = (_question, response) => void answer(response);
  expect(await lookUp()).toBeNull();
  expect(timeouts).toHaveBeenCalledExactlyOnceWith(5_000);
  expect(String(warn.mock.calls)).toContain(`"name":"${NAME}"`);
  timeouts.mockRestore();
  resolver.override = undefined;
  expect(await lookUp()).toEqual(["token"]);
});
