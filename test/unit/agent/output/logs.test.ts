import { afterEach, expect, test, vi } from "vitest";
import { createLogLines } from "../../../../agent/output/management/logs.ts";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";

const capture = {
  ...{ timestamp: "2026-03-01T12:00:00.000Z", method: "GET", path: "/orders?of=ada" },
  ...{ status: 200, state: "complete", duration_ms: 12, error: null },
  ...{ request_size: 0, response_size: 24 },
} as CaptureSummary;

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

test.each([
  [40, false, /^\d\d:\d\d:\d\d  GET      200  \/orders\?of=ada\n$/],
  [80, false, /^\d\d:\d\d:\d\d  GET      200     12 ms       24 B  \/orders\?of=ada\n$/],
  [60, true, /^\d\d:\d\d:\d\d  GET      200  shop          \/orders\?of=ada\n$/],
  [
    80,
    true,
    /^\d\d:\d\d:\d\d  GET      200     12 ms       24 B  shop          \/orders\?of=ada\n$/,
  ],
])(
  "a line has the path at a terminal of %i columns, with the tunnel: %j",
  (columns, named, line) => {
    vi.stubEnv("NO_COLOR", "1");
    let printed = "";
    vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      printed += String(text);
      return true;
    });
    createLogLines(named, columns).request(capture, "shop");
    expect(printed).toMatch(line);
  },
);
