/** The start of the front proxy's process. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startFrontProxy } from "../../../../self-host/front-proxy/front-proxy.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";

const ignore = (): void => undefined;
const log = { info: ignore, warn: ignore, error: ignore, forward: ignore };

test("it fails when another program has taken the port meanwhile, even one that answers as this server", async () => {
  const dir = await createTemporaryDir();
  const other = createServer((_, response) => response.end()).listen(0, "127.0.0.1");
  onTestFinished(async () => {
    other.close();
    await rm(dir, { recursive: true });
  });
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const start = startFrontProxy({
    host: "127.0.0.1",
    port,
    https: undefined,
    apiHosts: ["localhost"],
    upstreamPaths: { tunnel: join(dir, "tunnel.sock"), api: join(dir, "api.sock") },
    probePath: join(dir, "probe.sock"),
    controlPath: join(dir, "control.sock"),
    traceRequests: "off",
    limits: { total: 100, perSource: 100 },
    log,
  });
  start.then((child) => child.stop()).catch(ignore);
  await expect(start).rejects.toThrow("front proxy ended with code 1 before it was ready");
});
