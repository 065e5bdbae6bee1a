/** The devices in a relay's reports, which an agent can invent. */
import { runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { UNSAVED_DEVICES_MAX } from "../../durable-objects/relay/networks.ts";
import { DEVICES_PER_NETWORK_MAX } from "../../protocol/relay/limits.ts";
import { LiveRelay, networkStatus } from "../harness/workerd/live-relay.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

describe("a relay's report", () => {
  test("with lower counters than before, of a relay that had forgotten a device, adds to its total", async () => {
    const relay = new LiveRelay();
    const id = crypto.randomUUID();
    const link = await relay.link();
    for (const [rxBytes, txBytes] of [
      [10, 20],
      [12, 3],
      [15, 4],
    ] as const)
      link.report({ networks: [networkStatus(id, {}, { rxBytes, txBytes })] });
    await vi.waitFor(
      async () =>
        expect(await relay.stub.listDeviceTotals(id)).toMatchObject([{ rxBytes: 25, txBytes: 24 }]),
      WAIT_OPTIONS,
    );
  });

  test("with devices of several networks is saved at once when too many would wait in memory", async () => {
    const relay = new LiveRelay();
    const link = await relay.link();
    const ids = [crypto.randomUUID(), crypto.randomUUID()];
    const [template] = networkStatus(ids[0]!).devices;
    const networks = ids.map((id) => {
      const devices = Array.from({ length: UNSAVED_DEVICES_MAX / ids.length }, (_, at) => ({
        ...template!,
        publicKey: `key ${at}`,
      }));
      return networkStatus(id, { devices });
    });
    link.report({ networks });
    await vi.waitFor(
      async () => expect(await relay.stub.findNetworkSummaries(ids)).toHaveProperty(ids[1]!),
      WAIT_OPTIONS,
    );
    const saved = await runInDurableObject(relay.stub, (_, { storage }) =>
      storage.sql.exec<{ rows: number }>("select count(*) as rows from devices").one(),
    );
    expect(saved.rows).toBe(UNSAVED_DEVICES_MAX);
  });

  test("with ever new devices leaves a bounded number of a network, those that were reported last", async () => {
    const relay = new LiveRelay();
    const id = crypto.randomUUID();
    const link = await relay.link();
    const [template] = networkStatus(id).devices;
    const report = (keys: string[]) =>
      link.report({
        networks: [
          networkStatus(id, { devices: keys.map((publicKey) => ({ ...template!, publicKey })) }),
        ],
      });
    const listKeys = async () =>
      (await relay.stub.listDeviceTotals(id)).map(({ publicKey }) => publicKey);
    const waitForKey = (key: string) =>
      vi.waitFor(async () => expect(await listKeys()).toContain(key), WAIT_OPTIONS);
    const early = Array.from({ length: 100 }, (_, at) => `early ${at}`);
    const startMs = Date.now();
    await runInDurableObject(relay.stub, () => {
      vi.useFakeTimers({ now: startMs, toFake: ["Date"] });
    });
    report(early);
    await waitForKey("early 99");
    for (let second = 1; second <= 4; second += 1) {
      vi.setSystemTime(startMs + second * 1_000);
      const keys = Array.from({ length: 1_024 }, (_, at) => `key ${at} of ${second}`);
      report(keys);
      await waitForKey(keys.at(-1)!);
    }
    vi.setSystemTime(startMs + 5_000);
    report(["early 7", "last"]);
    await waitForKey("last");
    // Saves.
    await relay.stub.drain();
    await relay.sleep();
    const keys = await listKeys();
    expect(keys).toHaveLength(DEVICES_PER_NETWORK_MAX);
    expect(keys.filter((key) => key.startsWith("early"))).toEqual(["early 7"]);
    expect(keys).toContain("last");
  });
});
