/** The configurations of private networks are read by WireGuard's own tools. */
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { createNamespaces, findNamespaceProblem } from "../../harness/networks/namespaces.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { createNetwork, enroll, registerServer } from "../../harness/server/private-networks.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";

const problem = findNamespaceProblem();
if (problem !== undefined)
  console.log(`skipped: wg and wg-quick on real configurations (${problem})`);

let api: TestApi;
let owner: Person;
let relay: RelayLink;
let directory: string;
beforeAll(async () => {
  if (problem !== undefined) return;
  api = await startApi();
  owner = await api.owner();
  // `wg` resolves the host.
  relay = await RelayLink.connect(api.server, { host: "127.0.0.1" });
  directory = await mkdtemp(join(tmpdir(), "underpass-wg-"));
});
afterAll(async () => {
  if (problem !== undefined) return;
  relay[Symbol.dispose]();
  await rm(directory, { recursive: true });
  await api.stop();
});

/** @throws when the command fails or writes to stderr, as it does for a warning. */
function runQuietly(command: string, args: string[], input?: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", input });
  if (status !== 0 || stderr !== "") throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** A key pair that `wg` generated. */
function newKeyPair(): { privateKey: string; publicKey: string } {
  const privateKey = runQuietly("wg", ["genkey"]).trim();
  return { privateKey, publicKey: runQuietly("wg", ["pubkey"], privateKey).trim() };
}

/** Inserts the private key, and removes the settings that only `wg-quick` reads. */
async function toWgConfig(
  config: string,
  placeholder: string,
  privateKey: string,
): Promise<string> {
  const dir = join(directory, crypto.randomUUID());
  await mkdir(dir);
  const path = join(dir, "wg0.conf");
  await writeFile(path, config.replace(placeholder, privateKey), { mode: 0o600 });
  return runQuietly("wg-quick", ["strip", path]);
}

describe.skipIf(problem !== undefined)("WireGuard's tools", () => {
  test("accept both configurations without a warning", async () => {
    const names = { network: "Büro # [Interface]", device: "Ann's phone; PostUp = reboot" };
    const { id } = await createNetwork(owner, { name: names.network, cidr: "10.88.4.0/22" });
    const [server, client, other] = [newKeyPair(), newKeyPair(), newKeyPair()];
    const registered = await registerServer(owner, id, { server_public_key: server.publicKey });
    const path = `/private-networks/${id}`;
    const { device } = await enroll(owner, id, {
      name: names.device,
      public_key: client.publicKey,
    });
    await enroll(owner, id, { name: "other", public_key: other.publicKey });
    const read = async (address: string) =>
      (await owner.get<{ config: string }>(address)).body.config;
    const serverConfig = await read(`${path}/server-config`);
    const clientConfig = await read(`${path}/devices/${device.id}/config`);

    await using namespaces = createNamespaces(["wg"]);
    const machine = namespaces.machine("wg");
    const readInterface = async (name: string, config: string) => {
      machine.run("wireguard-go", [name]);
      const command = [...machine.prefix, "wg"];
      const wg = (args: string[]) => runQuietly(command[0]!, [...command.slice(1), ...args]);
      await vi.waitFor(() => wg(["show", name]), WAIT_OPTIONS);
      const path = join(directory, name);
      await writeFile(path, config, { mode: 0o600 });
      wg(["setconf", name, path]);
      return wg(["show", name, "dump"])
        .trim()
        .split("\n")
        .map((line) => line.split("\t"));
    };
    const asServer = await readInterface(
      `s${process.pid}`,
      await toWgConfig(serverConfig, "<PASTE_SERVER_PRIVATE_KEY>", server.privateKey),
    );
    const peers = (dump: string[][]) =>
      dump.slice(1).map(([key, , endpoint, allowed, , , , keepalive]) => ({
        key,
        endpoint,
        allowed,
        keepalive,
      }));
    expect(asServer[0]!.slice(0, 3)).toEqual([server.privateKey, server.publicKey, "51820"]);
    expect(peers(asServer)).toEqual(
      expect.arrayContaining([
        {
          key: client.publicKey,
          endpoint: "(none)",
          allowed: "10.88.4.2/32",
          keepalive: "off",
        },
        { key: other.publicKey, endpoint: "(none)", allowed: "10.88.4.3/32", keepalive: "off" },
      ]),
    );
    const asClient = await readInterface(
      `c${process.pid}`,
      await toWgConfig(clientConfig, "<PASTE_CLIENT_PRIVATE_KEY>", client.privateKey),
    );
    expect(peers(asClient)).toEqual([
      {
        key: server.publicKey,
        endpoint: registered.public_endpoint,
        allowed: "10.88.4.0/22",
        keepalive: "25",
      },
    ]);
    for (const config of [serverConfig, clientConfig]) {
      expect(config).not.toMatch(/DNS|0\.0\.0\.0\/0|::\/0/);
    }
  });
});
