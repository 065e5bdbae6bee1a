/** Captured requests on a whole server: what its owner says of them, and what becomes of them. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTunnelOwner, type TunnelOwner } from "../harness/owned-tunnel.ts";

let site: Server;
let world: TunnelOwner;
beforeAll(async () => {
  site = createServer((request, response) => {
    request.resume().on("end", () => response.end("hello"));
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  world = await startTunnelOwner();
});
afterAll(async () => {
  await world?.stop();
  site?.close();
});

const sitePort = () => (site.address() as AddressInfo).port;

const DEFAULTS = {
  capture: true,
  redactHeaders: ["authorization", "cookie", "set-cookie", "proxy-authorization"],
  allowReplay: false,
  bodies: true,
};

describe("what is kept of a tunnel's requests", () => {
  test("is everything but secrets, until its owner says otherwise", async () => {
    const { owner } = world;
    const tunnel = await world.expose("kept", sitePort());
    const { id } = tunnel;
    const path = `/tunnels/${id}/inspector`;
    expect((await owner.get(path)).body).toEqual({ id, ...DEFAULTS });
    const wanted = { capture: false, redactHeaders: ["X-Key", "x-key"], allowReplay: true };
    const kept = { id, bodies: true, ...wanted, redactHeaders: ["x-key"] };
    expect(await tunnel.put("inspector", wanted)).toMatchObject({ status: 200, body: kept });
    expect((await owner.get(path)).body).toEqual(kept);
    await tunnel.put("inspector", {});
    expect((await owner.get(path)).body).toEqual({ id, ...DEFAULTS });
    const events = await owner.get<object[]>("/events?action=tunnel_inspector_set");
    expect(events.body).toHaveLength(2);
  });

  test("is not what no header can be called, nor too many of them", async () => {
    const tunnel = await world.expose("refused", sitePort());
    for (const redactHeaders of [
      ["a b"],
      [""],
      ["x:"],
      Array.from({ length: 101 }, (_, i) => `x${i}`),
    ]) {
      expect(await tunnel.put("inspector", { redactHeaders })).toMatchObject({ status: 400 });
    }
  });
});
