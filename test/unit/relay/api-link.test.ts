/** What the relay says about an API that does not accept it, and where it listens without a setting. */
import { expect, test, vi } from "vitest";
import { ApiLink } from "../../../relay/api-link.ts";
import { readSettings } from "../../../relay/settings.ts";
import { startHttpServer } from "../../harness/fakes/http-server.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const RELAY_SECRET = "s".repeat(32);
const REQUIRED = { RELAY_API_URL: "http://127.0.0.1:1", RELAY_SECRET };

test.each([
  [401, "the API does not accept RELAY_SECRET: it must be the same as the server's"],
  [404, "the API answers 404 instead of opening a WebSocket: check RELAY_API_URL"],
  [503, "the API is not available now: it may be restarting (HTTP 503)"],
])("an API that answers %i is logged with what that means", async (status, problem) => {
  await using api = await startHttpServer((_, response) => response.writeHead(status).end());
  const warn = vi.fn();
  const link = new ApiLink({
    apiUrl: api.origin,
    apiHost: undefined,
    secret: RELAY_SECRET,
    hello: {
      type: "hello",
      relayId: "main",
      version: "0.0.0",
      host: "relay.example.com",
      url: "ws://relay.example.com:40000",
      firstPort: 40_001,
      lastPort: 40_002,
      epoch: "epoch",
    },
    log: { info: vi.fn(), warn, error: vi.fn() },
    onWelcome: vi.fn(),
    onMessage: vi.fn(),
  });
  link.connect();
  await vi.waitUntil(() => warn.mock.calls.length > 0, WAIT_OPTIONS);
  expect(warn.mock.calls[0]?.[1]).toMatchObject({ error: problem });
  await link.close();
});

test("a relay of its own listens on this machine only, unless HOST or RELAY_BIND names another address", () => {
  const readBind = (more: Record<string, string>): string =>
    readSettings({ ...REQUIRED, ...more }).bind;
  expect(readBind({})).toBe("127.0.0.1");
  expect(readBind({ HOST: "0.0.0.0" })).toBe("0.0.0.0");
  expect(readBind({ HOST: "0.0.0.0", RELAY_BIND: "192.0.2.7" })).toBe("192.0.2.7");
});
