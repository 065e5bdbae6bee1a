/** Servers whose disk has less free space than the reserve. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { LOW_DISK_MIN_BYTES } from "../../durable-objects/low-disk.ts";
import { readDiskSpace } from "../../self-host/disk-space.ts";
import { createReceiver, deliver } from "../harness/fakes/vendor.ts";
import { createPreparedDir } from "../harness/directories.ts";
import { readExposition } from "../harness/formats/exposition.ts";
import { reservePort } from "../harness/ports.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";
import { OK, startRawOrigin, type RawOrigin } from "../harness/tunnel/origin.ts";
import { startTunnelOwner, type TunnelOwner } from "../harness/tunnel/owned-tunnel.ts";
import { listCaptures } from "../harness/tunnel/visited-tunnel.ts";

const METRICS_TOKEN = randomBytes(24).toString("hex");

const VISITS = 100;
const HEADER = { "x-fill": "h".repeat(10 * 1024) };

const MEGABYTE = 1e6;
/** Larger than any disk here. */
const ENDLESS_RESERVE_MB = "1000000000";

/** The disk has two thirds of it. */
let reserveMb: number;
let dataDir: string;
let owner: TunnelOwner;
let origin: RawOrigin;
let metricsUrl: string;
beforeAll(async () => {
  const metricsPort = await reservePort();
  metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
  dataDir = await createPreparedDir();
  const { freeBytes } = await readDiskSpace(dataDir);
  reserveMb = Math.floor((1.5 * freeBytes) / MEGABYTE);
  const env = {
    DISK_RESERVE_MB: String(reserveMb),
    METRICS_PORT: String(metricsPort),
    METRICS_TOKEN,
  };
  [owner, origin] = await Promise.all([
    startTunnelOwner({ env, dataDir }),
    startRawOrigin(() => OK),
  ]);
});
afterAll(async () => {
  await owner.stop();
  await origin.stop();
  await rm(dataDir, { recursive: true });
});

test("captures make room for newer ones", async () => {
  const tunnel = await owner.expose("low-disk", origin.port);
  for (let n = 0; n < VISITS; n += 1) {
    expect((await tunnel.visit(`/${n}`, HEADER)).status).toBe(200);
  }
  const list = async () => (await listCaptures(owner.owner, { limit: 500 })).body;
  const listed = await vi.waitUntil(async () => {
    const captures = await list();
    return captures.length * HEADER["x-fill"].length < LOW_DISK_MIN_BYTES && captures;
  }, WAIT_OPTIONS);
  expect(listed[0]).toMatchObject({ path: `/${VISITS - 1}` });
});

test("a webhook receiver takes small deliveries, and refuses large ones until there is space", async () => {
  const receiver = await createReceiver(owner.owner);
  expect((await deliver(owner.api.server, receiver)).status).toBe(200);
  const refused = await deliver(owner.api.server, receiver, {
    body: randomBytes(LOW_DISK_MIN_BYTES),
  });
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(await refused.json()).toMatchObject({
    error: "unavailable",
    message: expect.stringContaining("disk") as string,
  });
});

test("when half of the reserve is used up, nothing is stored, and visitors are served", async () => {
  const critical = await startTunnelOwner({ env: { DISK_RESERVE_MB: ENDLESS_RESERVE_MB } });
  onTestFinished(() => critical.stop());
  const tunnel = await critical.expose("critical-disk", origin.port);
  expect((await tunnel.visit("/")).status).toBe(200);
  const receiver = await createReceiver(critical.owner);
  expect((await deliver(critical.api.server, receiver)).status).toBe(503);
  expect((await listCaptures(critical.owner, { limit: 500 })).body).toEqual([]);
  expect(await critical.api.anonymous.get("/ready")).toMatchObject({
    status: 200,
    body: { disk: "critical" },
  });
});

test("metrics have the free space and the reserve", async () => {
  const answer = await fetch(metricsUrl, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
  const metrics = readExposition(await answer.text());
  const value = (name: string) => metrics.value(`underpass_server_disk_${name}_bytes`);
  expect(value("free")).toBeGreaterThan(0);
  expect(value("size")).toBeGreaterThan(value("free"));
  expect(value("reserve")).toBe(reserveMb * MEGABYTE);
});
