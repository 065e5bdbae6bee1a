/** The lines that error pages write to the log. */
import { afterEach, expect, test, vi } from "vitest";
import type { Env } from "../../../../workers/env.ts";
import { createErrorPage } from "../../../../workers/edge/error-pages.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("many error pages write a burst of lines, then fifty a second, which count the others", () => {
  vi.useFakeTimers();
  const info = vi.spyOn(console, "info").mockReturnValue();
  const request = new Request("http://nowhere.localhost/");
  const fail = () => createErrorPage(request, {} as Env, "tunnel_not_found");
  for (let n = 0; n < 1_000; n++) expect(fail().status).toBe(404);
  expect(info).toHaveBeenCalledTimes(200);
  vi.advanceTimersByTime(1_000);
  for (let n = 0; n < 1_000; n++) fail();
  expect(info).toHaveBeenCalledTimes(250);
  expect(JSON.parse(String(info.mock.calls[200]![0]))).toMatchObject({ unlogged: 800 });
});
