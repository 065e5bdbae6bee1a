/** Requests of strangers, which name what does not exist, leave nothing behind and displace nothing. */
import { readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { inParallel } from "../../../shared/in-parallel.ts";
import { newAddress, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { readResidentMiB } from "../../harness/server/resident-memory.ts";
import { createReceiver, deliver } from "../../harness/fakes/vendor.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";

const CONCURRENT_REQUESTS = 50;
/** Enough that every shard has been called. */
const WARMING_REQUESTS = 400;
const REFUSED_REQUESTS = 5_000;
/** They may add this much: between two collections some 10 MiB gather. Without collections they leave 32. */
const GROWTH_MAX_MIB = 20;

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi({ env: { AUTH_RATE_LIMIT: "on", TRUST_PROXY: "true" } });
  owner = await api.owner();
});
afterAll(() => api.stop());

const newName = () => crypto.randomUUID().slice(0, 13);
const visit = (host: string) =>
  exchange(api.server.port, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);

/** The objects that have a file, and the directories of their classes. */
async function listObjects(): Promise<string[]> {
  const paths = await readdir(join(api.server.dataDir, "objects"), { recursive: true });
  // An object that is open has further files.
  return paths.filter((path) => !/-(wal|shm)$/.test(path)).sort();
}

/** The open files of objects. Others are connections, which end at their own time. */
async function countOpenObjectFiles(): Promise<number> {
  const directory = `/proc/${await api.server.getPid("workerd")}/fd`;
  const links = (await readdir(directory)).map((fd) =>
    readlink(join(directory, fd)).catch(() => ""),
  );
  return (await Promise.all(links)).filter((path) => path.includes(".sqlite")).length;
}

async function flood(requests: number, send: () => Promise<unknown>): Promise<void> {
  await inParallel(CONCURRENT_REQUESTS, Array.from({ length: requests }), async () => {
    await send();
  });
}

const FLOODS: [what: string, requests: number, send: () => Promise<unknown>][] = [
  [
    "random hosts",
    400,
    async () => expect((await visit(`${newName()}.localhost`)).status).toBe(404),
  ],
  [
    "random domains",
    200,
    async () => expect((await visit(`${newName()}.example`)).status).toBe(404),
  ],
  [
    "random webhook receivers",
    200,
    async () => {
      const path = `/hooks/${crypto.randomUUID()}`;
      expect((await api.anonymous.post(path, {})).status).toBe(404);
    },
  ],
  [
    "sign-ins from random addresses",
    100,
    async () => {
      const headers = { "x-forwarded-for": newAddress(), "content-type": "application/json" };
      const body = JSON.stringify({ device_code: "none" });
      await api.anonymous.send("POST", "/auth/cli/start", { headers, body });
    },
  ],
];

describe.each(FLOODS)("%s", (_, requests, send) => {
  test("create no object, no file and no directory", async () => {
    await flood(WARMING_REQUESTS, send);
    const before = await listObjects();
    const openBefore = await countOpenObjectFiles();
    await flood(requests, send);
    expect(await listObjects()).toEqual(before);
    // Objects that are idle are closed meanwhile.
    expect(await countOpenObjectFiles()).toBeLessThanOrEqual(openBefore);
  });
});

test.skipIf(process.platform !== "linux")(
  "the remains of requests without credentials do not gather in workerd's memory",
  async () => {
    const send = async () => expect((await api.anonymous.get("/tunnels")).status).toBe(401);
    const workerd = await api.server.getPid("workerd");
    await flood(1_000, send);
    const before = await readResidentMiB(workerd);
    await flood(REFUSED_REQUESTS, send);
    expect((await readResidentMiB(workerd)) - before).toBeLessThan(GROWTH_MAX_MIB);
  },
);

test("during a flood of random names, a new tunnel and a new receiver are reached at once", async () => {
  let isFlooding = true;
  const flooding = Array.from({ length: CONCURRENT_REQUESTS }, async () => {
    while (isFlooding) await visit(`${newName()}.localhost`);
  });
  try {
    for (let round = 0; round < 5; round += 1) {
      const subdomain = `found-${round}`;
      await owner.post<Tunnel>("/tunnels", { localPort: 1, subdomain });
      // The tunnel exists, and has no agent.
      expect((await visit(`${subdomain}.localhost`)).status).toBe(502);
      const receiver = await createReceiver(owner);
      const { status } = await deliver(api.server, receiver, { body: "{}", id: `${round}` });
      expect(status).toBe(200);
    }
  } finally {
    isFlooding = false;
    await Promise.all(flooding);
  }
});

test("all names are in one object, so that look-ups of unknown ones share queries", async () => {
  for (let n = 0; n < 10; n += 1) {
    await owner.post<Tunnel>("/tunnels", { localPort: 1 });
    await createReceiver(owner);
  }
  const files = (await listObjects()).filter((path) =>
    /-Directory\/[0-9a-f]{64}\.sqlite$/.test(path),
  );
  expect(files).toHaveLength(1);
});

test("a known host and a known receiver need no database, also after a restart of their objects", async () => {
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  const receiver = await createReceiver(owner);
  const workerd = await api.server.getPid("workerd");
  process.kill(workerd, "SIGKILL");
  const restarted = () => api.server.getPid("workerd").catch(() => workerd);
  await expect.poll(restarted, WAIT_OPTIONS).not.toBe(workerd);
  const isHealthy = () =>
    api.anonymous.get("/health").then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(isHealthy, WAIT_OPTIONS).toBe(200);
  const postgres = await api.server.getPid("postgres");
  process.kill(postgres, "SIGSTOP");
  try {
    expect((await visit(`${tunnel.subdomain}.localhost`)).status).toBe(502);
    const { status } = await deliver(api.server, receiver, { body: "{}", id: "1" });
    expect(status).toBe(200);
  } finally {
    process.kill(postgres, "SIGCONT");
  }
});
