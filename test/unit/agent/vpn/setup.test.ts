/** `--setup` and `--apply` against an API in memory and fake WireGuard tools that record their calls. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { InterfaceWatch } from "../../../../agent/vpn/interface-watch.ts";
import { AppliedPeers } from "../../../../agent/vpn/server/applied-peers.ts";
import { PeerApplier, planPeers } from "../../../../agent/vpn/server/peer-applier.ts";
import { derivePublicKey, generatePrivateKey } from "../../../../agent/vpn/wireguard/keys.ts";
import { NetworkApi } from "../../../../agent/vpn/network-api.ts";
import { NetworkStateDir } from "../../../../agent/vpn/server/network-state-dir.ts";
import { refreshConfig, setUpServer, toInterfaceName } from "../../../../agent/vpn/server/setup.ts";
import { VpnSession } from "../../../../agent/vpn/session.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { fakeWireGuard, type FakeWireGuard } from "../../../harness/networks/fake-wireguard.ts";
import { startNetworkApi, type FakeNetworkApi } from "../../../harness/networks/network-api.ts";
import { WAIT_MAX_MS, WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const { signal } = new AbortController();
let api: FakeNetworkApi;
let wireGuard: FakeWireGuard;
let directory: string;
let lines: string[];

beforeEach(async () => {
  api = await startNetworkApi();
  wireGuard = await fakeWireGuard();
  directory = join(await createTemporaryDir(), "home");
  lines = [];
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await api[Symbol.asyncDispose]();
});

const buildAccess = (server: URL) => ({
  server,
  token: Buffer.from("token"),
  authorities: undefined,
  renewal: "Get a new token.",
});
const setUp = (options: Partial<Parameters<typeof setUpServer>[0]> = {}) =>
  setUpServer({
    api: new NetworkApi(buildAccess(api.url)),
    server: api.url,
    network: "home",
    cidr: "10.88.0.0/24",
    listenPort: undefined,
    interfaceName: undefined,
    directory,
    canReplaceServer: false,
    isRoot: true,
    signal,
    report: (line) => lines.push(line),
    ...options,
  });
const read = (name: string) => readFile(join(directory, name), "utf8");

describe("setup", () => {
  test("creates the network, the keys and the configuration, registers the key and brings the interface up", async () => {
    const { network, isUp } = await setUp();
    const privateKey = (await read("private.key")).trim();
    const publicKey = derivePublicKey(privateKey);
    expect(network).toMatchObject({ name: "home", server_public_key: publicKey });
    expect(isUp).toBe(true);
    expect(await read("wg-home.conf")).toContain(`PrivateKey = ${privateKey}\n`);
    expect(await wireGuard.calls()).toEqual([`wg-quick up ${join(directory, "wg-home.conf")}`]);
  });

  test("makes secret files readable by their owner only", async () => {
    await setUp();
    for (const name of ["private.key", "wg-home.conf", "network.json"]) {
      expect([name, (await stat(join(directory, name))).mode & 0o777]).toEqual([name, 0o600]);
    }
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
  });

  test("never sends or prints the private key", async () => {
    await setUp();
    const privateKey = (await read("private.key")).trim();
    const bytes = Buffer.from(privateKey, "base64");
    for (const form of [privateKey, bytes.toString("hex"), bytes.toString("base64url")]) {
      expect(api.requests.join("\n")).not.toContain(form);
      expect(lines.join("\n")).not.toContain(form);
    }
    expect((await wireGuard.calls()).join("\n")).not.toContain(privateKey);
  });

  test("keeps the keys when it is repeated, registers nothing, and updates the interface", async () => {
    const first = await setUp();
    const privateKey = await read("private.key");
    api.addDevice("phone", derivePublicKey(generatePrivateKey()));
    const second = await setUp();
    expect(await read("private.key")).toBe(privateKey);
    expect(second.network.server_public_key).toBe(first.network.server_public_key);
    expect(api.requests.filter((request) => request.startsWith("PUT"))).toHaveLength(1);
    const stripped = join(directory, "wg-home.conf.stripped");
    expect((await wireGuard.calls()).slice(1)).toEqual([`wg syncconf wg-home ${stripped}`]);
    expect(await readdir(directory)).not.toContain("wg-home.conf.stripped");
  });

  test("without root prints the commands, and changes no interface", async () => {
    const { isUp } = await setUp({ isRoot: false });
    expect(isUp).toBe(false);
    const config = join(directory, "wg-home.conf");
    expect(lines).toContain(`  sudo wg-quick up ${config}`);
    expect(lines).toContain(
      `  sudo wg-quick strip ${config} | sudo wg syncconf wg-home /dev/stdin`,
    );
    expect(await wireGuard.calls()).toEqual([]);
  });

  test("for an unknown network needs --cidr, and prints the command", async () => {
    await expect(setUp({ cidr: undefined })).rejects.toThrow(
      "there is no private network called home; to create it, run: underpass vpn home --setup --cidr 10.88.0.0/24",
    );
    expect(api.networks).toEqual([]);
  });

  test("for a network with other addresses is refused", async () => {
    api.addNetwork("home", "10.99.0.0/24");
    await expect(setUp()).rejects.toThrow("has the addresses 10.99.0.0/24, not 10.88.0.0/24");
  });

  test("replaces another server only when requested", async () => {
    const network = api.addNetwork("home");
    network.server_public_key = derivePublicKey(generatePrivateKey());
    network.server_listen_port = 51_999;
    await expect(setUp()).rejects.toThrow("another server is registered for home");
    const replaced = await setUp({ canReplaceServer: true });
    expect(replaced.network.server_public_key).toBe((await read("public.key")).trim());
    expect(replaced.network.server_listen_port).toBe(51_999);
  });

  test("does not overwrite a configuration that was edited by hand", async () => {
    await setUp();
    const path = join(directory, "wg-home.conf");
    const edited = `${await read("wg-home.conf")}# by hand\n`;
    await writeFile(path, edited);
    for (let times = 0; times < 2; times += 1) {
      await setUp();
      expect(await read("wg-home.conf")).toBe(edited);
    }
    expect(await read("wg-home.conf.new")).not.toContain("by hand");
    expect(lines.join("\n")).toContain("edited by hand");
  });

  test.each([
    ...["PostUp = touch /tmp/owned", "PreDown=sh", "Table = off", "[Script]", "[constructor]"],
    ...["DNS = 203.0.113.9", "MTU = 1380\rPostUp", `PrivateKey = ${"A".repeat(42)}E=`],
    ...["Address = 203.0.113.1/24", "Address = 10.88.0.1/16", "Address = 10.88.0.2/32, ::1/128"],
    ...["AllowedIPs = 0.0.0.0/0", "AllowedIPs = 10.88.0.0/23, 10.88.0.2/32", "AllowedIPs ="].map(
      (line) => `[Peer]\n${line}`,
    ),
    "[Peer]\nEndpoint = 203.0.113.9:51820",
  ])(
    "refuses a configuration with a line that could run a command, redirect other traffic, or is unknown: %j",
    async (line) => {
      api.extraLine = line;
      await expect(setUp()).rejects.toThrow("this line is not allowed");
      expect(await wireGuard.calls()).toEqual([]);
      expect(await readdir(directory)).not.toContain("wg-home.conf");
    },
  );

  test("refuses a network whose addresses are not private", async () => {
    api.addNetwork("home", "0.0.0.0/0");
    await expect(setUp({ cidr: undefined })).rejects.toThrow(
      "the network's address block 0.0.0.0/0 must have a prefix from /16 to /30",
    );
    expect(await wireGuard.calls()).toEqual([]);
  });

  test("does not change another interface with the same name", async () => {
    await wireGuard.addInterface("wg-home", derivePublicKey(generatePrivateKey()));
    await expect(setUp()).rejects.toThrow("choose another name with --interface");
    await setUp({ interfaceName: "wg-office" });
    expect(await wireGuard.calls()).toEqual([`wg-quick up ${join(directory, "wg-office.conf")}`]);
  });

  test("refuses a private key that other users can read", async () => {
    await setUp();
    execFileSync("chmod", ["644", join(directory, "private.key")]);
    await expect(setUp()).rejects.toThrow("can be read by other users; run: chmod 600");
  });

  test("adds and removes devices in the configuration file", async () => {
    const { network } = await setUp();
    const { id, public_key: key } = api.addDevice("phone", derivePublicKey(generatePrivateKey()));
    const refresh = () =>
      refreshConfig(
        new NetworkApi(buildAccess(api.url)),
        network,
        new NetworkStateDir("home", directory),
        signal,
      );
    await refresh();
    expect(await read("wg-home.conf")).toContain(key);
    api.devices = api.devices.filter((device) => device.id !== id);
    await refresh();
    expect(await read("wg-home.conf")).not.toContain(key);
    // It does not count as edited by hand.
    await setUp();
    expect(await readdir(directory)).not.toContain("wg-home.conf.new");
    network.server_public_key = derivePublicKey(generatePrivateKey());
    expect(await refresh()).toBe(null);
  });

  test.each([
    ["home", "wg-home"],
    ["Büro in München", "wg-b-ro-in-m-nc"],
    ["../../etc", "wg-etc"],
    ["a-very-long-name-", "wg-a-very-long"],
  ])("a network called %s has the interface %s and its own directory", (name, expected) => {
    expect(toInterfaceName(name)).toBe(expected);
    vi.stubEnv("XDG_CONFIG_HOME", "/config");
    const { path } = new NetworkStateDir(name, undefined);
    expect(path).toMatch(/^\/config\/underpass\/networks\/[^/]+$/);
  });
});

describe("applying devices to the interface", () => {
  const newKey = () => derivePublicKey(generatePrivateKey());
  const cidr = "10.88.0.0/24";
  const apply = () =>
    new PeerApplier("wg-home", new AppliedPeers(directory)).apply(api.devices, cidr);

  beforeEach(async () => {
    api.addNetwork("home");
    await wireGuard.addInterface("wg-home", newKey());
  });

  test("adds and removes peers with their device, and keeps those that were added by hand", async () => {
    const [byHand, phone] = [newKey(), newKey()];
    await wireGuard.addPeer("wg-home", byHand, "10.88.0.200/32");
    const { id } = api.addDevice("phone", phone);
    expect((await apply()).added.map(({ name }) => name)).toEqual(["phone"]);
    expect(await wireGuard.peers("wg-home")).toEqual(
      [`${byHand} 10.88.0.200/32`, `${phone} 10.88.0.2/32`].sort(),
    );
    expect(await apply()).toEqual({ added: [], removed: [] });
    api.devices = api.devices.filter((device) => device.id !== id);
    expect(await apply()).toEqual({ added: [], removed: [phone] });
    expect(await wireGuard.peers("wg-home")).toEqual([`${byHand} 10.88.0.200/32`]);
  });

  test("removes first, so that a new device can have the address of a removed one", async () => {
    api.addDevice("old", newKey());
    await apply();
    api.devices = [];
    api.addDevice("new", newKey());
    await apply();
    const calls = await wireGuard.calls();
    expect(calls.map((call) => call.split(" ").at(-1))).toEqual([
      "10.88.0.2/32",
      "remove",
      "10.88.0.2/32",
    ]);
  });

  test("removes the peers that --setup wrote into the configuration, when their devices are removed", async () => {
    const phone = newKey();
    await new AppliedPeers(directory).add([phone]);
    await wireGuard.addPeer("wg-home", phone, "10.88.0.2/32");
    expect(await apply()).toEqual({ added: [], removed: [phone] });
  });

  test("ignores devices with an address outside the network or an invalid key", async () => {
    api.addDevice("router", newKey()).assigned_ip = "192.168.1.1";
    api.addDevice("option", "--help");
    await apply();
    expect(await wireGuard.calls()).toEqual([]);
  });

  test("whose record can't be written is reported, and ends nothing", async () => {
    await writeFile(directory, "not a directory");
    api.networks[0]!.server_public_key = newKey();
    api.addDevice("phone", newKey());
    const session = new VpnSession({
      api: new NetworkApi(buildAccess(api.url)),
      network: "home",
      findPrivateKey: () => Promise.resolve(null),
      apply: {
        interfaceName: "wg-home",
        createAppliedPeers: () => new AppliedPeers(directory),
        refreshConfig: () => Promise.resolve(),
      },
    });
    try {
      const noticed = once(session, "notice", { signal: AbortSignal.timeout(WAIT_MAX_MS) });
      session.start();
      const problem = `a part of ${join(directory, "applied-peers.json")} is not a directory`;
      expect(String(await noticed)).toContain(`peers are not updated: ${problem}`);
    } finally {
      session.close();
    }
  });

  test("keeps the additional addresses of a peer that was added by hand", () => {
    const key = newKey();
    const device = api.addDevice("site", key);
    const current = new Map([[key, ["192.168.7.0/24"]]]);
    const ips = ["192.168.7.0/24", "10.88.0.2/32"];
    expect(planPeers([device], current, new Set()).set).toEqual([{ device, allowedIps: ips }]);
    const own = planPeers([device], current, new Set([key])).set;
    expect(own).toEqual([{ device, allowedIps: ["10.88.0.2/32"] }]);
  });
});

test("watching another interface ends a poll of the first one that is running", async () => {
  const [first, second] = [generatePrivateKey(), generatePrivateKey()];
  await wireGuard.addInterface("wg-1", first);
  await wireGuard.addInterface("wg-2", second);
  await wireGuard.addPeer("wg-1", "peer-of-the-first", "10.88.0.2/32");
  await wireGuard.addPeer("wg-2", "peer-of-the-second", "10.88.0.2/32");
  const seen: string[] = [];
  const onEndpoint = (publicKey: string): void => void seen.push(publicKey);
  const watch = new InterfaceWatch({ onEndpoint, onHandshake: () => undefined });
  watch.start(first);
  watch.start(second);
  await vi.waitUntil(() => seen.includes("peer-of-the-second"), WAIT_OPTIONS);
  watch.stop();
  expect(seen).toEqual(["peer-of-the-second"]);
});
