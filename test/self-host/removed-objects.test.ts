/** Tunnels and receivers that were deleted leave no file in the data directory. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import { createPreparedDir } from "../harness/directories.ts";
import { createReceiver, deliver } from "../harness/fakes/vendor.ts";
import { mintToken, startApi } from "../harness/server/api.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";
import { exchange } from "../harness/tunnel/raw-http.ts";

const LOOPS = 5;

let dataDir: string;
beforeAll(async () => (dataDir = await createPreparedDir()));
afterAll(() => rm(dataDir, { recursive: true, force: true }));

const findObjectFiles = async (className: string) => {
  const directory = join(dataDir, "objects", `underpass-${className}`);
  const names = await readdir(directory).catch(() => []);
  return names
    .filter((name) => /^[0-9a-f]{64}\.sqlite$/.test(name))
    .map((name) => join(directory, name));
};
const countFiles = async () =>
  (await findObjectFiles("Tunnel")).length + (await findObjectFiles("Receiver")).length;

/**
 * Makes the hour pass after which the objects of what was deleted remove their storage. Only while no server runs. workerd
 * stores the time of an alarm in two files.
 */
async function letTimePass(): Promise<void> {
  for (const className of ["Tunnel", "Receiver"]) {
    for (const path of await findObjectFiles(className)) {
      using object = new DatabaseSync(path);
      object.exec("delete from _cf_KV where key = 'storage-removal-at'");
      object.exec("update _cf_METADATA set value = 0 where key = 1");
    }
    const directory = join(dataDir, "objects", `underpass-${className}`);
    using alarms = new DatabaseSync(join(directory, "metadata.sqlite"));
    alarms.exec("update _cf_ALARM set scheduled_time = 0");
  }
}

test("creating and deleting tunnels and receivers in a loop leaves no file of an object", async () => {
  {
    await using api = await startApi({ dataDir });
    const owner = await api.owner();
    const token = await mintToken(owner);
    for (let n = 0; n < LOOPS; n += 1) {
      const { body } = await owner.post<Tunnel>("/tunnels", {
        localPort: 1,
        subdomain: `gone-${n}`,
      });
      const { socket } = await api.connectAgent(token.wireBytes, {
        port: 1,
        subdomain: `gone-${n}`,
      });
      expect(socket).toBeDefined();
      const visit = `GET / HTTP/1.1\r\nHost: gone-${n}.localhost\r\nConnection: close\r\n\r\n`;
      const left = exchange(api.server.port, visit).catch(() => undefined);
      await owner.delete(`/tunnels/${body.id}`);
      await left;

      const receiver = await createReceiver(owner);
      expect((await deliver(api.server, receiver, { id: `d-${n}` })).status).toBe(200);
      await owner.delete(`/webhook-receivers/${receiver.id}`);
    }
    expect(await countFiles()).toBe(2 * LOOPS);
  }
  await letTimePass();
  {
    await using api = await startApi({ dataDir });
    const isEmpty = (path: string) => {
      using database = new DatabaseSync(path, { readOnly: true });
      return database.prepare("select 1 from sqlite_master").all().length === 0;
    };
    const files = [...(await findObjectFiles("Tunnel")), ...(await findObjectFiles("Receiver"))];
    await vi.waitUntil(() => files.every(isEmpty), WAIT_OPTIONS);
    expect((await api.anonymous.get("/health")).status).toBe(200);
  }
  await using api = await startApi({ dataDir });
  expect(api.server.output).toContain("unused files removed");
  expect(await countFiles()).toBe(0);
});
