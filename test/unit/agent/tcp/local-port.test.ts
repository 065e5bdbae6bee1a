/** The local port of `underpass connect` while its tunnel can't be reached. */
import { getEventListeners, once } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { LocalPort } from "../../../../agent/connect/local-port.ts";
import { reservePort } from "../../../harness/ports.ts";

afterEach(() => void vi.restoreAllMocks());

test("an attempt to reach the tunnel leaves no listener behind", async () => {
  const listen = vi.spyOn(AbortSignal.prototype, "addEventListener");
  const port = new LocalPort({
    server: new URL(`http://127.0.0.1:${await reservePort()}`),
    authorities: undefined,
    token: Buffer.alloc(1),
    renewal: "",
    tunnel: "shop",
    listen: { host: "127.0.0.1", port: 0 },
  });
  const noticed = once(port, "notice");
  await port.start();
  await noticed;
  const signals = listen.mock.contexts as AbortSignal[];
  port.close();
  expect(signals).not.toHaveLength(0);
  expect(signals.flatMap((signal) => getEventListeners(signal, "abort"))).toEqual([]);
});
