/** Warnings at the start of the server about a relay that others can't reach, or whose ports other connections take. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  findRelayWarnings,
  readOutgoingPorts,
  type OutgoingPorts,
} from "../../../self-host/relay-warnings.ts";
import { readSettings } from "../../../self-host/settings.ts";
import { createTemporaryDir } from "../../harness/directories.ts";

const PUBLIC = { SERVICE_DOMAIN: "tunnels.example.com" };
const RELAY = { ...PUBLIC, RELAY_HOST: "relay.example.com" };
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
