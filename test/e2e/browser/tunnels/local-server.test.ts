/** The local server of a tunnel on the tunnel's page, in a real browser. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { expose, type ExposedTunnel } from "../../../../agent/expose.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { getSection, usePages } from "../../../harness/browser/pages.ts";
import { mintToken, startApi, type Person } from "../../../harness/server/api.ts";

const pages = usePages(() => startApi());
let owner: Person;
let agent: ExposedTunnel;
beforeAll(async () => {
  owner = await pages.api.owner();
  const token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
  agent = await expose({
    server: pages.api.server.url,
    token,
    origin: "unix:/run/my app.sock",
    subdomain: "page-of-socket",
  });
});
afterAll(() => agent.close());

test("the page names the address of the connected agent, and no port when a socket has none", async () => {
  const page = await pages.openAs(owner.email, `/tunnels/${agent.tunnelId}`);
  const state = getSection(page, "State");
  await state.getByText("HTTP, unix:/run/my app.sock").waitFor();
  await page.getByText("Do this on the command line").click();
  const command = "underpass http 'unix:/run/my app.sock' --subdomain page-of-socket";
  await page.getByText(command).waitFor();

  await agent.close();
  await page.getByText("Connect an agent").waitFor();
  await page.getByText("underpass http PORT --subdomain page-of-socket").first().waitFor();
  expect(await state.getByText("HTTP", { exact: true }).count()).toBe(1);
});

test("before an agent has connected, the page and its command name the port that was chosen", async () => {
  const created = { subdomain: "page-of-created", localPort: 80 };
  const { body } = await owner.post<Tunnel>("/tunnels", created);
  const page = await pages.openAs(owner.email, `/tunnels/${body.id}`);
  await getSection(page, "State").getByText("HTTP, port 80").waitFor();
  await page.getByText("underpass http 80 --subdomain page-of-created").first().waitFor();
});
