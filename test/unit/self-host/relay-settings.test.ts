/** Where others reach the relay, and the warnings at the start of the server when they can't, or when other connections take its ports. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  findRelayWarnings,
  readOutgoingPorts,
  type OutgoingPorts,
} from "../../../self-host/relay-warnings.ts";
import { CONTROL_PATH, toRelayUrl } from "../../../protocol/relay/paths.ts";
import { findAgentRoute } from "../../../self-host/relay.ts";
import { readSettings } from "../../../self-host/settings.ts";
import { createTemporaryDir } from "../../harness/directories.ts";

const PUBLIC = { SERVICE_DOMAIN: "tunnels.example.com" };
const RELAY = { ...PUBLIC, RELAY_HOST: "relay.example.com", RELAY_BIND: "0.0.0.0" };
const HTTPS = { HTTPS_PORT: "443", HTTPS_CERTIFICATE_FILE: "cert.pem", HTTPS_KEY_FILE: "key.pem" };
const warn = (environment: Record<string, string>, outgoing: OutgoingPorts | null = null): string =>
  findRelayWarnings(readSettings(environment), outgoing).join("\n");

test("a public server whose relay has a loopback address is warned about, and says what to set", () => {
  expect(warn(PUBLIC)).toContain("RELAY_HOST is 127.0.0.1");
  expect(warn(PUBLIC)).toContain("RELAY_BIND=0.0.0.0");
  expect(warn({ ...PUBLIC, RELAY_HOST: "localhost" })).toContain("RELAY_HOST is localhost");
  expect(warn(RELAY)).toBe("");
  expect(warn({ ...PUBLIC, LOCAL_RELAY: "off" })).toBe("");
  expect(warn({})).toBe("");
  expect(warn({ SERVICE_DOMAIN: "tunnels.home.arpa" })).toBe("");
});

test("a public server whose relay listens on this machine only is warned about", () => {
  const line = "it listens on 127.0.0.1 only";
  expect(warn({ ...PUBLIC, RELAY_HOST: "relay.example.com" })).toContain(line);
  expect(warn({ ...PUBLIC, ...HTTPS })).toContain(line);
  expect(warn({ ...PUBLIC, ...HTTPS })).toContain("RELAY_BIND=0.0.0.0");
  expect(warn({ ...PUBLIC, ...HTTPS, RELAY_BIND: "0.0.0.0" })).toBe("");
  expect(warn({ ...PUBLIC, ...HTTPS, HOST: "0.0.0.0" })).toBe("");
  expect(warn(HTTPS)).toBe("");
});

test("with HTTPS the relay's host is the API's unless it is set", () => {
  expect(readSettings({ ...PUBLIC, ...HTTPS }).relay?.host).toBe("tunnels.example.com");
  const API_HOSTS = "underpass.example.net,127.0.0.1";
  expect(readSettings({ ...PUBLIC, ...HTTPS, API_HOSTS }).relay?.host).toBe(
    "underpass.example.net",
  );
  expect(readSettings({ ...HTTPS, ...RELAY }).relay?.host).toBe("relay.example.com");
  expect(readSettings(PUBLIC).relay?.host).toBe("127.0.0.1");
});

test("agents get a URL of the server's HTTPS unless another one is set", () => {
  const find = (environment: Record<string, string>, publicPort = 443) =>
    findAgentRoute(readSettings({ ...PUBLIC, ...environment }), publicPort, "/run")?.url;
  expect(find(HTTPS)).toBe("wss://tunnels.example.com/relay");
  expect(find(HTTPS, 8443)).toBe("wss://tunnels.example.com:8443/relay");
  expect(find({ ...HTTPS, RELAY_URL: "wss://relay.example.com" })).toBeUndefined();
  expect(find({ ...HTTPS, LOCAL_RELAY: "off" })).toBeUndefined();
  expect(find({ ...HTTPS, PUBLIC_SCHEME: "http" })).toBeUndefined();
  expect(find({ PUBLIC_SCHEME: "https" })).toBeUndefined();
});

test.each([
  ["ws://relay.example.com", "ws://relay.example.com/agent"],
  ["wss://api.example.com/", "wss://api.example.com/agent"],
  ["wss://api.example.com:8443/relay", "wss://api.example.com:8443/relay/agent"],
])("agents of %s connect to %s", (url, expected) => {
  expect(toRelayUrl(url, CONTROL_PATH).href).toBe(expected);
});

test.each<[string, number, number, [number, number][], boolean]>([
  ["inside the kernel's range", 32_768, 60_999, [], true],
  ["reserved in part", 32_768, 60_999, [[40_000, 40_998]], true],
  [
    "reserved in two parts",
    32_768,
    60_999,
    [
      [40_000, 40_499],
      [40_500, 40_999],
    ],
    false,
  ],
  ["above the kernel's range", 32_768, 39_999, [], false],
])("a range that is %s", (_, first, last, reserved, isWarned) => {
  const outgoing = {
    range: { first, last },
    reserved: reserved.map(([from, to]) => ({ first: from, last: to })),
  };
  const sysctl = "sysctl -w net.ipv4.ip_local_reserved_ports=40000-40999";
  expect(warn(RELAY, outgoing).endsWith(sysctl)).toBe(isWarned);
  expect(warn({}, outgoing)).toBe("");
});

test("the kernel's settings are read as it writes them", async () => {
  const directory = await createTemporaryDir();
  expect(readOutgoingPorts(directory)).toBeNull();
  await writeFile(join(directory, "ip_local_port_range"), "32768\t60999\n");
  await writeFile(join(directory, "ip_local_reserved_ports"), "40000-40999,50000\n");
  expect(readOutgoingPorts(directory)).toEqual({
    range: { first: 32_768, last: 60_999 },
    reserved: [
      { first: 40_000, last: 40_999 },
      { first: 50_000, last: 50_000 },
    ],
  });
});
