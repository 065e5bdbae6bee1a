import { afterEach, expect, test, vi } from "vitest";
import type { Env } from "../../../../workers/env.ts";
import { createErrorPage } from "../../../../workers/edge/error-pages.ts";

afterEach(() => vi.restoreAllMocks());

test("a page about an invalid response does not blame the local server: the agent knows the reason", async () => {
  vi.spyOn(console, "info").mockReturnValue();
  const request = new Request("http://shop.localhost/");
  const page = createErrorPage(request, {} as Env, "origin_failed");
  // For example, the agent does not trust the server's certificate.
  expect(await page.json()).toEqual({
    error: "origin_failed",
    message:
      "The server behind this tunnel sent no valid response. The agent prints the reason: check its output, then the log of the local server.",
  });
});

test("a page about an offline tunnel names the option without which the agent would open another one", async () => {
  vi.spyOn(console, "info").mockReturnValue();
  const request = new Request("http://shop.localhost/");
  const page = createErrorPage(request, {} as Env, "agent_offline");
  expect(await page.text()).toContain("`underpass http 3000 --subdomain NAME`");
});
