/** Which server commands use when none is given. */
import { beforeEach, expect, test, vi } from "vitest";
import {
  findServer,
  getCredentialsPath,
  removeCredential,
  saveCredential,
} from "../../../../agent/settings.ts";
import { rmSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createTemporaryDir } from "../../../harness/directories.ts";

const [first, second, third] = ["a", "b", "c"].map((name) => new URL(`https://${name}.test`)) as [
  URL,
  URL,
  URL,
];

beforeEach(async () => {
  const home = await createTemporaryDir();
  await mkdir(join(home, "underpass"));
  vi.stubEnv("XDG_CONFIG_HOME", home);
  return () => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  };
});

test("after a logout it is the server of the login before, in the order of the latest logins", async () => {
  for (const server of [first, second, third, first]) {
    await saveCredential(server, Buffer.from("token"), "laptop");
  }
  const used = [];
  for (const _ of [1, 2, 3]) {
    const server = await findServer(undefined);
    used.push(server.host);
    await removeCredential(server);
  }
  expect(used).toEqual(["a.test", "c.test", "b.test"]);
  expect((await findServer(undefined)).href).toBe("http://localhost:8787/");
});

test("a logout from another server does not change it", async () => {
  for (const server of [first, second])
    await saveCredential(server, Buffer.from("token"), "laptop");
  await removeCredential(first);
  expect(await findServer(undefined)).toEqual(second);
});

test("logins that end at the same moment are all saved", async () => {
  const servers = [first, second, third];
  await Promise.all(
    servers.map((server) => saveCredential(server, Buffer.from("token"), server.host)),
  );
  const labels = [];
  for (const server of servers) labels.push((await removeCredential(server)).label);
  expect(labels).toEqual(["a.test", "b.test", "c.test"]);
});

test("a lock that a killed process has left does not keep a login from being saved", async () => {
  await writeFile(`${getCredentialsPath()}.lock`, "");
  await saveCredential(first, Buffer.from("token"), "laptop");
  expect((await removeCredential(first)).label).toBe("laptop");
});

test("a login waits while others have the lock one after another, however long that takes", async () => {
  const lock = `${getCredentialsPath()}.lock`;
  writeFileSync(lock, "");
  let otherLogins = 0;
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => {
    rmSync(lock);
    otherLogins += 1;
    if (otherLogins < 5) writeFileSync(lock, "");
    return (nowMs += 10_000);
  });
  await saveCredential(first, Buffer.from("token"), "laptop");
  expect(otherLogins).toBe(5);
});
