/** The page of the local inspector, with the texts of a hostile server. */
import { once } from "node:events";
import { expect, test } from "vitest";
import { InspectedTunnels } from "../../../agent/inspect/inspected-tunnels.ts";
import { InspectServer } from "../../../agent/inspect/inspect-server.ts";
import { startScriptedTunnel } from "../../harness/tunnel/scripted-tunnel.ts";

test("shows names and URLs as text, and can send no form", async () => {
  const name = `"><form action="https://evil.example"><img src=x>`;
  await using tunnel = await startScriptedTunnel(1, { name, url: `http://shop.localhost/${name}` });
  const ready = once(tunnel.agent, "ready");
  tunnel.agent.start();
  await tunnel.connection();
  await ready;
  const tunnels = new InspectedTunnels();
  tunnels.addHttp(tunnel.agent);
  const server = new InspectServer(tunnels, "127.0.0.1");
  const response = await fetch(await server.listen(0));
  expect(response.headers.get("content-security-policy")).toContain("form-action 'none'");
  const page = await response.text();
  expect(page).toContain("<li>&quot;&gt;&lt;form");
  expect(page).not.toMatch(/<form|<img/);
  server.close();
});
