/** The local inspector, with the texts of a hostile server and a hostile visitor. */
import { once } from "node:events";
import { Server } from "node:net";
import { expect, test, vi } from "vitest";
import { buildListingPage } from "../../../agent/files/listing-page.ts";
import { InspectedTunnels } from "../../../agent/inspect/inspected-tunnels.ts";
import { InspectServer } from "../../../agent/inspect/inspect-server.ts";
import { startScriptedTunnel } from "../../harness/tunnel/scripted-tunnel.ts";

test("the page shows names and URLs as text, and can send no form", async () => {
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

test("the agent's own pages are dark in a dark browser, and fit a phone", async () => {
  const server = new InspectServer(new InspectedTunnels(), "127.0.0.1");
  const page = await (await fetch(await server.listen(0))).text();
  server.close();
  for (const html of [page, buildListingPage([], { names: [], isCut: false })]) {
    expect(html).toContain('<meta name="color-scheme" content="light dark">');
    expect(html).toContain('<meta name="viewport" content="width=device-width">');
  }
});

test("the JSON of its API can't control the terminal of someone who reads it with curl", async () => {
  const path = "/\u001b[2J\u009b2J\u202e\u2066";
  await using tunnel = await startScriptedTunnel(1);
  const tunnels = new InspectedTunnels();
  tunnels.addHttp(tunnel.agent);
  tunnel.agent.emit("request", { path } as never);
  const server = new InspectServer(tunnels, "127.0.0.1");
  const response = await fetch(`${await server.listen(0)}/api/requests`);
  const text = await response.text();
  expect(text).not.toMatch(/(?!\n)\p{C}/u);
  expect(JSON.parse(text)).toMatchObject({ requests: [{ path }] });
  server.close();
});

test("it keeps answering after a connection that the system could not accept", async () => {
  const listen = vi.spyOn(Server.prototype, "listen");
  const server = new InspectServer(new InspectedTunnels(), "127.0.0.1");
  const url = await server.listen(0);
  (listen.mock.contexts[0] as Server).emit("error", new Error("accept EMFILE"));
  listen.mockRestore();
  expect((await fetch(`${url}/api/tunnels`)).status).toBe(200);
  server.close();
});
