/** Calls to services of the operator that do not answer in time, as workerd ends them. The limit is shortened. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { fetchConfiguredService } from "../../workers/operator-network.ts";
import { shortenTimeouts } from "../harness/short-timeouts.ts";

const { SILENT_SERVICE, ENDLESS_SERVICE } = env as unknown as Record<string, Fetcher>;
const LIMITS = { maxMs: 5_000, maxBytes: 1_000 };

test.each([
  ["never answers", SILENT_SERVICE],
  ["never ends its answer", ENDLESS_SERVICE],
])("a call fails when its time is over and the service %s", async (_, OPERATOR_NETWORK) => {
  using timeouts = shortenTimeouts(20);
  const call = fetchConfiguredService({ OPERATOR_NETWORK }, "http://service.test", {}, LIMITS);
  await expect(call).rejects.toThrow("The operation was aborted due to timeout");
  expect(timeouts).toHaveBeenCalledExactlyOnceWith(LIMITS.maxMs);
});
