/** `underpass vpn <network> add|devices|remove` against an API in memory. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encode } from "uqr";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { runCommandLine } from "../../../../agent/cli/run-command-line.ts";
import { renderQr } from "../../../../agent/commands/vpn-devices.ts";
import { UsageError } from "../../../../agent/options.ts";
import { derivePublicKey, generatePrivateKey } from "../../../../agent/vpn/wireguard/keys.ts";
import { readPrivateKey } from "../../../../agent/vpn/wireguard/config.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { startNetworkApi, type FakeNetworkApi } from "../../../harness/networks/network-api.ts";

let api: FakeNetworkApi;
let options: string[];

beforeEach(async () => {
  api = await startNetworkApi();
  const network = api.addNetwork("home");
  network.server_public_key = derivePublicKey(generatePrivateKey());
  network.server_listen_port = 51_820;
  network.public_endpoint = "relay.example:40001";
  const tokenFile = join(await createTemporaryDir(), "token");
  await writeFile(tokenFile, "token");
  options = ["--server", api.url.origin, "--token-file", tokenFile];
});
afterEach(async () => {
  await api[Symbol.asyncDispose]();
});

/** Runs the command in a process of its own. */
async function runProcess(...args: string[]) {
  await using agent = await runAgent(["vpn", ...args, ...options]);
  const code = await agent.exit;
  return { code, stdout: agent.stdout, stderr: agent.stderr };
}

/** Runs the command in this process. @throws what the process would report. */
const run = (...args: string[]) => runCommand("vpn", ...args);

async function runCommand(...args: string[]) {
  const printed = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((name) =>
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      printed[name] += String(text);
      return true;
    }),
  );
  try {
    const code = await runCommandLine([...args, ...options]);
    return { code, ...printed };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

describe("adding a device", () => {
  test("prints a configuration with the generated key, and its QR code", async () => {
    const { code, stdout, stderr } = await runProcess("home", "add", "phone");
    expect(code).toBe(0);
    const privateKey = readPrivateKey(stdout)!;
    expect(derivePublicKey(privateKey)).toBe(api.devices[0]?.public_key);
    expect(stdout).toContain("Endpoint = relay.example:40001");
    expect(stderr).toContain(renderQr(stdout, false));
    // The command that adds the device to the WireGuard server.
    expect(stderr).toContain("underpass vpn home --apply");
    expect(stderr).toContain(
      `wg set <interface> peer ${api.devices[0]?.public_key} allowed-ips 10.88.0.2/32`,
    );
  });

  test("to a network whose agent runs does not ask for a second agent, which would replace it", async () => {
    api.networks[0]!.relay.state = "udp";
    const { stderr } = await run("home", "add", "phone");
    expect(stderr).toContain("If the network's agent runs with --apply, it adds the device");
    expect(stderr).toContain("wg set <interface> peer");
    expect(stderr).not.toContain("underpass vpn home --apply");
  });

  test("never sends the private key, in any form", async () => {
    const { stdout } = await run("home", "add", "phone", "--json");
    const { config } = JSON.parse(stdout) as { config: string };
    const privateKey = readPrivateKey(config)!;
    const bytes = Buffer.from(privateKey, "base64");
    for (const form of [privateKey, bytes.toString("hex"), bytes.toString("base64url")]) {
      expect(api.requests.join("\n")).not.toContain(form);
    }
  });

  test("with --out writes a file for its owner only, and overwrites none", async () => {
    const file = join(await createTemporaryDir(), "phone.conf");
    const first = await run("home", "add", "phone", "--out", file, "--no-qr");
    expect(first.code).toBe(0);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const config = await readFile(file, "utf8");
    expect(first.stdout + first.stderr).not.toContain(readPrivateKey(config));
    const other = join(await createTemporaryDir(), "tablet.conf");
    const { stdout } = await run("home", "add", "tablet", "--out", other, "--json");
    expect(JSON.parse(stdout)).toEqual({ device: api.devices[1], out: other });
    await expect(run("home", "add", "other", "--out", file)).rejects.toThrow("already exists");
    const nowhere = join(file, "..", "missing", "other.conf");
    await expect(run("home", "add", "other", "--out", nowhere)).rejects.toThrow("is no directory");
    expect(await readFile(file, "utf8")).toBe(config);
    expect(api.devices.map(({ name }) => name)).toEqual(["phone", "tablet"]);
  });

  test("to a network without a server adds nothing, and says what to do", async () => {
    api.networks[0]!.server_public_key = null;
    const { code, stderr } = await runProcess("home", "add", "phone");
    expect([code, stderr]).toEqual([1, expect.stringContaining("underpass vpn home --setup")]);
    expect(api.devices).toEqual([]);
  });

  test("leaves no device behind when its configuration can't be used", async () => {
    api.extraLine = "DNS = 203.0.113.9";
    const { code, stdout } = await runProcess("home", "add", "phone");
    expect([code, stdout]).toEqual([1, ""]);
    expect(api.devices).toEqual([]);
  });
});

test("a QR code has the size and the modules that its text needs", () => {
  const text = "[Interface]\nPrivateKey = …\n";
  const code = encode(text, { ecc: "L", border: 2 });
  const lines = renderQr(text, false).split("\n");
  expect(lines).toHaveLength(Math.ceil(code.size / 2));
  const modules = lines.flatMap((line) => {
    const cells = [...line];
    const isDark = (shapes: string) => cells.map((cell) => shapes.includes(cell));
    return [isDark(" ▄"), isDark(" ▀")];
  });
  expect(modules.slice(0, code.size)).toEqual(code.data);
  expect(renderQr(text, true)).toMatch(/^\u001b\[97m\u001b\[40m.*\u001b\[49m\u001b\[39m$/m);
});

test("a network without devices says how to add one", async () => {
  const { code, stdout, stderr } = await run("home", "devices");
  expect([code, stdout]).toEqual([0, ""]);
  expect(stderr).toBe("The network has no devices. Add one with: underpass vpn home add phone\n");
  expect(await run("home", "devices", "--json")).toMatchObject({ stdout: "", stderr: "" });
});

test("all devices of a network are listed, whatever the number of pages", async () => {
  api.networks[0]!.cidr = "10.88.0.0/16";
  const key = derivePublicKey(generatePrivateKey());
  for (let count = 0; count < 2_001; count += 1) api.addDevice(`device ${count}`, key);
  const { stdout } = await run("home", "devices", "--json");
  expect(stdout.trim().split("\n")).toHaveLength(2_001);
});

test("devices are listed as a table, and as JSON", async () => {
  Object.assign(api.addDevice("phone", derivePublicKey(generatePrivateKey())), {
    last_handshake_at: new Date(Date.now() - 12_000).toISOString(),
    endpoint: "203.0.113.9:4711",
    rx_bytes: 1_500,
    tx_bytes: 2_500_000,
  });
  api.addDevice("lap\u001b[31mtop", derivePublicKey(generatePrivateKey()));
  const { code, stdout } = await run("home", "devices");
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^phone +10\.88\.0\.2 +1\d s ago +203\.0\.113\.9:4711 +1\.5 kB +2\.5 MB +\S{36}$/m,
  );
  expect(stdout).toMatch(/^lap\\x1b\[31mtop +10\.88\.0\.3 +never +- +- +- +\S{36}$/m);
  const json = await run("home", "devices", "--json");
  const rows = json.stdout.trim().split("\n");
  expect(rows.map((row) => JSON.parse(row) as unknown)).toEqual(api.devices);
});

test("a device is removed by its name, and the command to remove its peer is printed", async () => {
  const { public_key: key } = api.addDevice("phone", derivePublicKey(generatePrivateKey()));
  const { code, stdout } = await run("home", "remove", "phone");
  expect([code, api.devices]).toEqual([0, []]);
  expect(stdout).toContain("accepts the device until its peer is removed");
  expect(stdout).toContain(`wg set <interface> peer ${key} remove`);
  await expect(run("home", "remove", "phone")).rejects.toThrow("has no device called phone");
});

test("of two devices with one name, each is removed by its address or its id", async () => {
  const first = api.addDevice("phone", derivePublicKey(generatePrivateKey()));
  const { stderr } = await run("home", "add", "phone");
  expect(stderr).toContain(`called phone too (10.88.0.2, id ${first.id})`);
  await expect(run("home", "remove", "phone")).rejects.toThrow(
    `name one by its address or id: 10.88.0.2, id ${first.id}; 10.88.0.3, id ${api.devices[1]!.id}`,
  );
  await run("home", "remove", "10.88.0.3");
  expect(api.devices).toEqual([first]);
});

test("networks are listed, and one is deleted by its name after a confirmation", async () => {
  api.networks[0]!.relay.state = "udp";
  const office = api.addNetwork("office", "10.99.0.0/24");
  const { stdout } = await runCommand("networks");
  expect(stdout).toMatch(
    /^home +10\.88\.0\.0\/24 +relay\.example:40001 +connected over udp +\S{36}$/m,
  );
  expect(stdout).toMatch(/^office +10\.99\.0\.0\/24 +- +- +\S{36}$/m);
  const json = await runCommand("networks", "list", "--json");
  expect(JSON.parse(json.stdout.split("\n")[1]!)).toEqual(office);
  await expect(runCommand("networks", "delete", "office")).rejects.toThrow("use --yes");
  await expect(runCommand("networks", "delete", "shop", "--yes")).rejects.toThrow(
    "there is no private network called shop; existing networks: home, office",
  );
  expect(api.networks).toHaveLength(2);
  const { code } = await runCommand("networks", "delete", "home", "--yes");
  expect([code, api.networks]).toEqual([0, [office]]);
});

test("setup creates nothing on the server when WireGuard's tools are not installed", async () => {
  vi.stubEnv("PATH", await createTemporaryDir());
  await expect(run("office", "--setup", "--cidr", "10.99.0.0/24")).rejects.toThrow(
    "wg is not installed",
  );
  vi.unstubAllEnvs();
  expect(api.networks.map(({ name }) => name)).toEqual(["home"]);
});

describe("the command", () => {
  test.each([
    [[], "the network is missing"],
    [["home", "add"], "the device is missing"],
    [["home", "fly"], "unknown subcommand of vpn: fly; use add, devices or remove"],
    [["home", "devices", "phone"], "unexpected argument: phone"],
    [["home", "add", "phone", "--setup"], "unknown option: --setup"],
    [["home", "--setup", "--listen-port", "70000"], "from 1 to 65535"],
    [["home", "--replace-server"], "--replace-server needs --setup"],
    [["home", "--listen-port", "51820"], "--listen-port needs --setup"],
    [["home", "--cidr", "10.88.0.0/24"], "--cidr needs --setup"],
    [["home", "--setup", "--cidr", "foo"], "--cidr must be an address block"],
    [["home", "--interface", "a-name-of-20-letters"], "--interface must have up to 15 letters"],
    [["home", "--unknown"], "unknown"],
  ])("%j is bad usage", async (args, message) => {
    const error: unknown = await run(...args).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UsageError);
    expect(error).toHaveProperty("message", expect.stringContaining(message));
  });

  test("reports bad usage with exit code 2", async () => {
    const { code, stderr } = await runProcess("home", "fly");
    expect([code, stderr]).toEqual([2, expect.stringContaining("unknown subcommand of vpn: fly")]);
  });

  test("for an unknown network is rejected with the names of existing ones: exit code 1", async () => {
    const { code, stdout } = await run("office", "--json");
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({
      event: "rejected",
      time: expect.any(String),
      reason: "not_found",
      message: "there is no private network called office; existing networks: home",
    });
  });

  test.skipIf(process.getuid?.() === 0)("with --apply and without root is refused", async () => {
    await expect(run("home", "--apply")).rejects.toThrow("CAP_NET_ADMIN");
  });
});
