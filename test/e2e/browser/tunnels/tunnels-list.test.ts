/** The list of tunnels, in a real browser. */
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { expose, type ExposedTunnel } from "../../../../agent/expose.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken, startApi, type Person } from "../../../harness/server/api.ts";
import { RelayLink } from "../../../harness/server/relay-link.ts";
import { NARROW, findPageProblems } from "../../../harness/browser/page-checks.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import {
  answerDialog,
  chooseAction,
  clickButton,
  getDialog,
  usePages,
} from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());
const agents: ExposedTunnel[] = [];
afterAll(() => Promise.all(agents.map((agent) => agent.close())));

/** Serves a tunnel with a real agent. Nothing listens on its local port. */
async function serve(owner: Person, subdomain: string): Promise<ExposedTunnel> {
  const { wireBytes } = await mintToken(owner);
  const token = Buffer.from(wireBytes, "base64");
  const agent = await expose({ server: pages.api.server.url, token, port: 3000, subdomain });
  agents.push(agent);
  return agent;
}

async function create(owner: Person, subdomain: string, fields: object = {}): Promise<Tunnel> {
  const request = { localPort: 3000, subdomain, ...fields };
  const { status, body } = await owner.post<Tunnel>("/tunnels", request);
  expect(status).toBe(201);
  return body;
}

/** Names are unique on the whole server, which other test files use too. */
const newName = (word: string) => `${word}-${crypto.randomUUID().slice(0, 8)}`;
const findRow = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });

test("without tunnels the page shows the command, and the first tunnel as soon as its agent connects", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/tunnels");
  await page.getByText(`underpass login --server ${pages.origin}`).waitFor();
  const name = newName("first");
  await serve(owner, name);
  await findRow(page, name).getByText(/^Live/).waitFor();
  const address = `${name}.localhost:${pages.api.server.port}`;
  const link = findRow(page, name).getByRole("link", { name: address });
  expect(await link.getAttribute("href")).toBe(`http://${address}`);
});

test("a tunnel is created by keyboard alone, and its page turns live when the agent connects", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/tunnels");
  const name = newName("shop");
  await page.getByText("Open your first tunnel").waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Create a tunnel" }).waitFor();
  await page.keyboard.type("3000");
  await page.keyboard.press("Tab");
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name }).waitFor();
  expect(new URL(page.url()).pathname).toMatch(/^\/tunnels\/[0-9a-f-]{36}$/);
  const connect = page.getByRole("region", { name: "Connect an agent" });
  await connect.getByText(`underpass http 3000 --subdomain ${name}`).waitFor();
  await serve(owner, name);
  await page.getByText("An agent is connected").waitFor();
  await connect.waitFor({ state: "detached" });
});

test("errors of the API are shown at their fields", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/tunnels");
  await clickButton(page, "Create a tunnel");
  await page.getByRole("spinbutton", { name: "Local port" }).fill("3000");
  await page.getByRole("textbox", { name: "Name" }).fill("-shop");
  await clickButton(page, "Create");
  await page.getByText("It must have 1 to 63 lower-case letters").waitFor();
  await page.getByRole("textbox", { name: "Name" }).fill("login");
  await clickButton(page, "Create");
  await page.getByText("is reserved for the service").waitFor();
});

test("the list is filtered by text, state and project, and the URL has the filter", async () => {
  const owner = await pages.api.owner();
  await owner.post("/projects", { slug: "storefront", name: "Storefront" });
  const [api, shop, stopped] = [newName("api"), newName("shop"), newName("stopped")];
  await create(owner, api);
  await create(owner, shop, { projectSlug: "storefront" });
  await owner.post(`/tunnels/${(await create(owner, stopped)).id}/stop`);
  const page = await pages.openAs(owner.email, "/tunnels");
  await page.getByText("3 tunnels").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type(shop.slice(0, -1));
  await page.getByText("1 of 3 tunnels").waitFor();
  await findRow(page, shop).waitFor();
  await clickButton(page, "Clear");
  await page.getByText("3 tunnels", { exact: true }).waitFor();
  await page.getByLabel("State", { exact: true }).selectOption("Stopped");
  await findRow(page, api).waitFor({ state: "detached" });
  await findRow(page, stopped).waitFor();
  expect(page.url()).toBe(`${pages.origin}/tunnels?state=stopped`);

  await page.goto(`${pages.origin}/tunnels?state=inactive&project=storefront`);
  await findRow(page, shop).waitFor();
  await page.getByText("1 of 3 tunnels").waitFor();
  expect(await page.getByLabel("Project", { exact: true }).inputValue()).toBe("storefront");
  await page.goto(`${pages.origin}/tunnels?text=nothing`);
  await page.getByText("No tunnel matches the filter").waitFor();
});

test("the list is sorted, and the URL has the order", async () => {
  const owner = await pages.api.owner();
  const found = [newName("b-10"), newName("b-9"), newName("a")] as const;
  for (const name of found) await create(owner, name);
  const setRequests = "update tunnels set total_requests = $2 where org_id = $1 and name = $3";
  await pages.api.sql(setRequests, [owner.orgId, 7, found[0]]);
  const page = await pages.openAs(owner.email, "/tunnels?order=requests");
  const readNames = () => page.locator(".tunnel-name").allTextContents();
  expect(await readNames()).toEqual([found[0], found[2], found[1]]);
  await page.getByLabel("Order").selectOption("By name");
  await expect.poll(readNames, WAIT_OPTIONS).toEqual([found[2], found[1], found[0]]);
  expect(new URL(page.url()).search).toBe("?order=name");
});

test("a tunnel is stopped from its menu, and started again by the notification", async () => {
  const owner = await pages.api.owner();
  const name = newName("shop");
  const { id } = await create(owner, name);
  const page = await pages.openAs(owner.email, "/tunnels");
  await clickButton(page, `Actions for ${name}`);
  const requests = page.getByRole("menuitem", { name: "Open its requests" });
  expect(await requests.getAttribute("href")).toBe(`/requests?tunnel_id=${id}`);
  await page.getByRole("menuitem", { name: "Stop" }).click();
  await findRow(page, name).getByText("Stopped").waitFor();
  await clickButton(page, "Start it again");
  await findRow(page, name).getByText("Waiting").waitFor();
  await page.getByText(`${name} was started.`).waitFor();
  expect(await page.getByText(`${name} was stopped.`).count()).toBe(0);
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  expect(body).toMatchObject([{ id, stoppedAt: null }]);
});

test("the menu of a tunnel is busy until the server has stopped it", async () => {
  const owner = await pages.api.owner();
  const name = newName("shop");
  const { id } = await create(owner, name);
  const page = await pages.openAs(owner.email, "/tunnels");
  const [sent, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route(`**/tunnels/${id}/stop`, async (route) => {
    sent.resolve();
    await held.promise;
    await route.continue();
  });
  await chooseAction(page, name, "Stop");
  await sent.promise;
  const row = findRow(page, name);
  const menu = row.getByRole("button", { name: `Actions for ${name}` });
  await menu.and(page.locator("[aria-busy=true]")).waitFor();
  expect(await row.getByText("Stopped").count()).toBe(0);
  held.resolve();
  await row.getByText("Stopped").waitFor();
  await menu.and(page.locator(":not([aria-busy])")).waitFor();
});

test("a TCP tunnel is created with its public port and shown with its address", async () => {
  const owner = await pages.api.owner();
  const relayId = newName("relay");
  using _relay = await RelayLink.connect(pages.api.server, {
    relayId,
    host: `${relayId}.example.com`,
    firstPort: 51_001,
    lastPort: 51_010,
  });
  const name = newName("database");
  const page = await pages.openAs(owner.email, "/tunnels");
  await page.goto(`${pages.origin}/tunnels?dialog=create`);
  await page.getByRole("spinbutton", { name: "Local port" }).fill("5432");
  await page.getByRole("textbox", { name: "Name" }).fill(name);
  await page.getByLabel("Protocol").selectOption("tcp");
  await page.getByRole("spinbutton", { name: "Public port" }).waitFor();
  await answerDialog(page, "Create");
  const [tunnel] = (await owner.get<Tunnel[]>("/tunnels")).body;
  const address = tunnel!.publicUrl.replace("tcp://", "");
  await page.getByText(address, { exact: true }).waitFor();
  await page.getByText(`underpass tcp 5432 --subdomain ${name}`).first().waitFor();
  expect(new URL(page.url()).search).toBe("");
  expect(await page.getByRole("tab").allTextContents()).toEqual(["Overview", "Access", "Settings"]);
});

test("a viewer sees the tunnels without buttons that change them", async () => {
  const owner = await pages.api.owner();
  const name = newName("shop");
  await create(owner, name);
  const viewer = await pages.api.colleague(owner, "viewer");
  const page = await pages.openAs(viewer.email, "/tunnels");
  await findRow(page, name).waitFor();
  expect(await page.getByRole("button", { name: "Create a tunnel" }).count()).toBe(0);
  await clickButton(page, `Actions for ${name}`);
  await page.getByRole("menuitem", { name: "Open its requests" }).waitFor();
  expect(await page.getByRole("menuitem", { name: "Stop" }).count()).toBe(0);
});

test("axe finds nothing on tunnels of several states and in the form, which fit a narrow screen", async () => {
  const owner = await pages.api.owner();
  const { id } = await create(owner, newName("shop"));
  await owner.put(`/tunnels/${id}/policy`, { actions: [{ kind: "deny", path_prefix: "/admin" }] });
  await owner.put(`/tunnels/${id}/maintenance`, {});
  await owner.post(`/tunnels/${(await create(owner, newName("stopped"))).id}/stop`);
  const page = await pages.openAs(owner.email, "/tunnels");
  await page.getByText("2 tunnels").waitFor();
  expect(await findPageProblems(page)).toEqual([]);
  await clickButton(page, "Create a tunnel");
  await getDialog(page).waitFor();
  expect(await findPageProblems(page)).toEqual([]);
});

test("long names are cut on a narrow screen", async () => {
  const owner = await pages.api.owner();
  const name = newName("landing-page-with-a-rather-long-name");
  await create(owner, name);
  const page = await pages.openAs(owner.email, "/tunnels");
  await page.setViewportSize(NARROW);
  await findRow(page, name).waitFor();
  const frame = page.getByRole("group", { name: "Tunnels" });
  const overflow = (element: { scrollWidth: number; clientWidth: number }) =>
    element.scrollWidth - element.clientWidth;
  // Widths of columns are not whole pixels.
  expect(await frame.evaluate(overflow)).toBeLessThanOrEqual(1);
});
