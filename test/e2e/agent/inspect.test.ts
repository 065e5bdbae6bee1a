/** `underpass http --inspect`: what the tunnel does, for other programs on the same machine. */
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HttpTunnel } from "../../../agent/tunnel/http-tunnel.ts";
import { parseInspectAddress } from "../../../agent/inspect/inspect-address.ts";
import { InspectedTunnels } from "../../../agent/inspect/inspected-tunnels.ts";
import { startInspectServer } from "../../../agent/inspect/start-inspect-server.ts";
import { parseTarget } from "../../../agent/origin/target.ts";
import { mintToken } from "../../harness/server/api.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";

let stack: Stack;
let token: Buffer;
beforeAll(async () => {
  stack = await startStack();
  token = Buffer.from((await mintToken(stack.owner)).wireBytes, "base64");
});
afterAll(() => stack.stop());

const share = (name: string, ...more: string[]) =>
  runAgent(
    ["http", import.meta.dirname, "--server", stack.server.url, "--token-file", "TOKEN"].concat(
      ["--subdomain", name, "--json"],
      more,
    ),
    { token },
  );

async function getStatus(url: string, host: string): Promise<number> {
  const asked = request(url, { headers: { host } });
  asked.end();
  const [response] = (await once(asked, "response")) as [{ statusCode: number; resume(): void }];
  response.resume();
  return response.statusCode;
}

test("the inspector reports the tunnel and its latest requests, to programs of this machine only", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  await using agent = await share("inspect-locally", "--inspect", `127.0.0.1:${port}`);
  const { tunnelId, url: publicUrl } = await agent.event("ready");
  const { url } = (await agent.event("inspect")) as { url: string };
  expect(Number(new URL(url).port)).toBeGreaterThan(port);
  expect((await agent.event("notice")).message).toBe(
    `--inspect: port ${port} is in use by another program; this agent listens at ${url}`,
  );
  taken.close();
  await stack.visit("inspect-locally", "/none?a=1");
  await agent.event("request");
  const tunnels = await fetch(`${url}/api/tunnels`);
  expect(await tunnels.json()).toEqual({
    tunnels: [
      {
        id: tunnelId,
        name: "inspect-locally",
        publicUrl,
        local: import.meta.dirname,
        protocol: "http",
        state: "online",
      },
    ],
  });
  expect(tunnels.headers.get("access-control-allow-origin")).toBeNull();
  const { requests } = (await (await fetch(`${url}/api/requests`)).json()) as {
    requests: object[];
  };
  expect(requests).toMatchObject([
    { tunnel: "inspect-locally", method: "GET", path: "/none?a=1", status: 404 },
  ]);
  expect(await (await fetch(url)).text()).toContain(`href="${stack.server.url}`);
  for (const host of ["localhost", "127.0.0.1:1", "[::1]"])
    expect(await getStatus(url, host)).toBe(200);
  for (const host of ["rebound.test", "localhost.rebound.test", "127.0.0.1.rebound.test", "a@b:x"])
    expect(await getStatus(url, host)).toBe(403);
  expect((await fetch(`${url}/api/tunnels`, { method: "POST" })).status).toBe(405);
});

test("the inspector keeps the last 100 requests, warns about other machines, and can be stopped", async () => {
  const tunnel = new HttpTunnel({
    target: parseTarget("3000")!,
    server: new URL("http://localhost"),
    token,
    renewal: "Get a new token.",
    authorities: undefined,
    settings: {},
  });
  const noticed = once(tunnel, "notice");
  const tunnels = new InspectedTunnels();
  tunnels.addHttp(tunnel);
  const stop = await startInspectServer(tunnel, tunnels, { host: "0.0.0.0", port: 0 });
  expect(await noticed).toEqual([expect.stringContaining("other machines")]);
  const url = tunnel.inspectUrl!.replace("0.0.0.0", "127.0.0.1");
  for (let id = 1; id <= 150; id += 1) tunnel.emit("request", { id } as never);
  const { requests } = (await (await fetch(`${url}/api/requests`)).json()) as {
    requests: { id: number }[];
  };
  expect([requests.length, requests[0]!.id, requests.at(-1)!.id]).toEqual([100, 150, 51]);
  stop();
  await expect(fetch(url)).rejects.toThrow();
  await tunnel.close();
});

test("the inspector does not stop the tunnel when its address can't be used", async () => {
  await using agent = await share("no-inspect", "--inspect", "192.0.2.1:4040");
  await agent.event("ready");
  expect((await agent.event("notice")).message).toContain("can't listen at 192.0.2.1:4040");
});

test("--inspect off opens no port", async () => {
  await using agent = await share("inspect-off", "--inspect", "off");
  await agent.event("ready");
  expect(agent.stdout).not.toContain('"inspect"');
  expect(() => parseInspectAddress("nowhere", "--inspect")).toThrow("must be off or an address");
});
