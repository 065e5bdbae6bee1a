/** What `underpass tunnels show` and the API say about the local server of a tunnel. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expose, type ExposeOptions } from "../../../../agent/expose.ts";
import { LOCAL_SERVER_MAX_CHARS } from "../../../../protocol/local-server.ts";
import type { TunnelAgent } from "../../../../protocol/schemas/tunnels/connections.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { startTunnelOwner, type TunnelOwner } from "../../../harness/tunnel/owned-tunnel.ts";
import { runAgent, runToEnd } from "../../../harness/tunnel/agent.ts";

let world: TunnelOwner;
let token: Buffer;
let directory: string;
beforeAll(async () => {
  [world, directory] = await Promise.all([startTunnelOwner(), createTemporaryDir()]);
  token = Buffer.from(world.token, "base64");
});
afterAll(async () => {
  await world.stop();
  await rm(directory, { recursive: true });
});

const getServerArgs = () => ["--server", world.api.server.url, "--token-file", "TOKEN"];

async function findShown(subdomain: string): Promise<string | undefined> {
  const args = ["tunnels", "show", subdomain, ...getServerArgs()];
  const { stdout } = await runToEnd(args, { token });
  return /^Local server +(.*)$/m.exec(stdout)?.[1];
}

/** @returns what is shown while an agent is connected, and afterwards. */
async function showBoth(subdomain: string, local: Partial<ExposeOptions>): Promise<unknown[]> {
  const agent = await expose({ server: world.api.server.url, token, subdomain, ...local });
  const shown = await findShown(subdomain);
  await agent.close();
  return [shown, await findShown(subdomain)];
}

test("it is the address of the connected agent, and later its port unless it may have none", async () => {
  const socket = `unix:${join(directory, "app.sock")}`;
  const answer = () => new Response();
  expect(await showBoth("shown-port", { port: 4321 })).toEqual([
    ...["http://localhost:4321 (http)", "port 4321 (http)"],
  ]);
  expect(await showBoth("shown-host", { origin: "https://192.0.2.1:8443" })).toEqual([
    ...["https://192.0.2.1:8443 (https)", "port 8443 (https)"],
  ]);
  expect(await showBoth("shown-socket", { origin: socket })).toEqual([
    ...[`${socket} (http)`, "unknown (http)"],
  ]);
  expect(await showBoth("shown-handler", { fetch: answer })).toEqual([
    ...["function (http)", "unknown (http)"],
  ]);
});

test("a tunnel that no agent has served has the port that was chosen for it", async () => {
  await world.owner.post("/tunnels", { subdomain: "shown-created", localPort: 80 });
  expect(await findShown("shown-created")).toBe("port 80 (http)");
});

test("a directory with a path that is too long to be sent is shared, and not shown", async () => {
  const short = join(directory, "site");
  const long = join(directory, ...Array(LOCAL_SERVER_MAX_CHARS / 50).fill("d".repeat(60)));
  for (const [at, path] of [short, long].entries()) {
    await mkdir(path, { recursive: true });
    await writeFile(join(path, "index.html"), "");
    const args = ["http", path, "--subdomain", `shown-files-${at}`, "--json", "--inspect", "off"];
    await using agent = await runAgent([...args, ...getServerArgs()], { token });
    const { tunnelId } = await agent.event("ready");
    const { body } = await world.owner.get<TunnelAgent[]>(`/tunnels/${tunnelId as string}/agents`);
    expect(body).toMatchObject([{ local: path === long ? null : path }]);
  }
  expect(await findShown("shown-files-1")).toBe("unknown (http)");
});
