/** What the agent says while visitors of its tunnel get the maintenance page. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { startSharedServer, type SharedServer } from "../../../harness/agent/shared-server.ts";
import { openScreen } from "../../../harness/screen.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";

let shared: SharedServer;
beforeAll(async () => {
  shared = await startSharedServer((_request, response) => void response.end("ok"));
});
afterAll(() => shared?.[Symbol.asyncDispose]());

/** A tunnel whose agent has not connected yet. @returns its path in the API. */
async function createTunnel(subdomain: string): Promise<string> {
  const { port } = shared;
  const { body } = await shared.owner.post<Tunnel>("/tunnels", { localPort: port, subdomain });
  return `/tunnels/${body.id}`;
}

async function begin(path: string): Promise<void> {
  expect((await shared.owner.put(`${path}/maintenance`, {})).status).toBe(200);
}

async function end(path: string): Promise<void> {
  expect((await shared.owner.delete(`${path}/maintenance`)).status).toBe(200);
}

const run = (name: string, ...more: string[]) =>
  runAgent(shared.getArgs(name, ...more), { token: shared.token });

test("lines say that it began, again after its agent was replaced, and that it has ended", async () => {
  const path = await createTunnel("mode-lines");
  const begun = ` in maintenance: visitors get 503; to end it: DELETE ${path}/maintenance (API)\n`;
  await using first = await run("mode-lines");
  await expect.poll(() => first.stdout, WAIT_OPTIONS).toContain("Forwarding ");
  await begin(path);
  await expect.poll(() => first.stdout, WAIT_OPTIONS).toContain(begun);
  expect((await shared.visit("mode-lines", "/")).status).toBe(503);

  await using second = await run("mode-lines");
  await expect.poll(() => second.stdout, WAIT_OPTIONS).toContain(begun);
  await end(path);
  const ended = " maintenance has ended: visitors are served again\n";
  await expect.poll(() => second.stdout, WAIT_OPTIONS).toContain(ended);
  expect((await shared.visit("mode-lines", "/")).status).toBe(200);
});

test("events say so, also when it is on before the agent connects", async () => {
  const path = await createTunnel("mode-json");
  await begin(path);
  await using agent = await run("mode-json", "--json");
  expect(await agent.event("maintenance")).toEqual({ event: "maintenance", on: true });
  await end(path);
  await expect
    .poll(() => agent.stdout, WAIT_OPTIONS)
    .toMatch(/"event":"maintenance","time":"[^"]+","on":false/);
});

test("the screen shows a warning until it has ended", async () => {
  const path = await createTunnel("mode-screen");
  await begin(path);
  const token = { token: shared.token };
  await using screen = await openScreen(shared.getArgs("mode-screen"), token);
  await screen.waitFor(/^Warning {5}in maintenance: visitors get 503; to end it: DELETE$/m);
  await end(path);
  await screen.waitFor(/^Server .*\nAccount .*\nRequests {4}0$/m);
});
