/** Custom domains that have moved away from a tunnel. */
import { expect, test } from "vitest";
import { CUSTOM_HOSTS_MAX } from "../../../../durable-objects/tunnel/proxy/custom-hosts.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";

const HOST = "www.shop.example";

async function isRefused(tunnel: LiveTunnel, host = HOST): Promise<boolean> {
  const response = await tunnel.stub.fetch(`http://${host}/`);
  await response.text();
  return response.headers.get("underpass-error") === "tunnel_not_found";
}

const updateHost = (tunnel: LiveTunnel, version: number, isHere: boolean) =>
  tunnel.stub.setCustomHost(HOST, { version, isHere });

test("requests for a domain are refused from when it moves away until it is back; others are not", async () => {
  const tunnel = new LiveTunnel();
  await updateHost(tunnel, 1, true);
  expect(await isRefused(tunnel)).toBe(false);
  await updateHost(tunnel, 2, false);
  for (const host of [HOST, "WWW.Shop.Example", `${HOST}.`, `${HOST}:8080`]) {
    expect([host, await isRefused(tunnel, host)]).toEqual([host, true]);
  }
  for (const host of ["shop.localhost", "shop.example", `x.${HOST}`]) {
    expect([host, await isRefused(tunnel, host)]).toEqual([host, false]);
  }
  await updateHost(tunnel, 3, true);
  expect(await isRefused(tunnel)).toBe(false);
});

test("an update that arrives late changes nothing", async () => {
  const tunnel = new LiveTunnel();
  await updateHost(tunnel, 3, true);
  await updateHost(tunnel, 2, false);
  expect(await isRefused(tunnel)).toBe(false);
  await updateHost(tunnel, 4, false);
  await updateHost(tunnel, 3, true);
  expect(await isRefused(tunnel)).toBe(true);
});

test("an object that hibernated remembers the domains", async () => {
  const tunnel = new LiveTunnel();
  await updateHost(tunnel, 1, false);
  await tunnel.sleep();
  expect(await isRefused(tunnel)).toBe(true);
});

test("an object remembers a bounded number of domains, the latest ones", async () => {
  const tunnel = new LiveTunnel();
  await updateHost(tunnel, 1, false);
  const updates = Array.from({ length: CUSTOM_HOSTS_MAX }, (_, n) =>
    tunnel.stub.setCustomHost(`shop-${n}.example`, { version: 1, isHere: false }),
  );
  await Promise.all(updates);
  expect(await isRefused(tunnel)).toBe(false);
  expect(await isRefused(tunnel, "shop-0.example")).toBe(true);
});
