/** The page of one tunnel, in a real browser. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expose, type ExposedTunnel } from "../../../../agent/expose.ts";
import type {
  CaptureSettings,
  CaptureSummary,
} from "../../../../protocol/schemas/inspector/captures.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken, startApi, waitUntil, type Person } from "../../../harness/server/api.ts";
import {
  NARROW,
  findAccessibilityProblems,
  findChangingCommands,
  findPageProblems,
  findUnnamed,
} from "../../../harness/browser/page-checks.ts";
import {
  answerDialog,
  clickButton,
  getDialog,
  getSection,
  usePages,
  waitForContent,
} from "../../../harness/browser/pages.ts";
import { startRawOrigin, type RawOrigin } from "../../../harness/tunnel/origin.ts";
import { exchange, findHeader, type Answer } from "../../../harness/tunnel/raw-http.ts";

const pages = usePages(() => startApi());
let origin: RawOrigin;
let owner: Person;
let token: Buffer;
const agents: ExposedTunnel[] = [];

beforeAll(async () => {
  origin = await startRawOrigin();
  owner = await pages.api.owner();
  const { wireBytes } = await mintToken(owner, { tunnelQuota: 50 });
  token = Buffer.from(wireBytes, "base64");
});
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.close()));
  await origin.stop();
});

interface Served {
  id: string;
  name: string;
  host: string;
  /** Sends a request of a program. */
  visit: (lines?: string) => Promise<Answer>;
}

/** A tunnel whose agent is connected. Its local server answers `ok`. */
async function serve(): Promise<Served> {
  const name = `shop-${crypto.randomUUID().slice(0, 8)}`;
  const { server } = pages.api;
  const agent = await expose({ server: server.url, token, port: origin.port, subdomain: name });
  agents.push(agent);
  const host = `${name}.localhost:${server.port}`;
  return {
    id: agent.tunnelId,
    name,
    host,
    visit: (lines = "") => exchange(server.port, `GET / HTTP/1.1\r\nhost: ${host}\r\n${lines}\r\n`),
  };
}

async function create(subdomain?: string): Promise<Tunnel> {
  return (await owner.post<Tunnel>("/tunnels", { localPort: 3000, subdomain })).body;
}

async function findTunnel(id: string): Promise<Tunnel> {
  return (await owner.get<Tunnel[]>("/tunnels")).body.find((tunnel) => tunnel.id === id)!;
}

const openTab = (id: string, tab: string, by = owner): Promise<Page> =>
  pages.openAs(by.email, `/tunnels/${id}?tab=${tab}`);

test("the browser goes back to the tab before", async () => {
  const { id } = await create();
  const page = await openTab(id, "access");
  await page.getByRole("tab", { name: "Policy" }).click();
  await getSection(page, "Traffic policy").waitFor();
  await page.goBack();
  await getSection(page, "IP allowlist").waitFor();
});

test("the selected tab is in the URL, and arrow keys change it", async () => {
  const { id } = await create();
  const page = await openTab(id, "access");
  await getSection(page, "IP allowlist").waitFor();
  await page.getByRole("tab", { name: "Access" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const ringOffset = await page.evaluate("getComputedStyle(document.activeElement).outlineOffset");
  expect(ringOffset, "the focus ring is not clipped").toBe("-2px");
  await page.keyboard.press("Enter");
  await getSection(page, "What visitors see").waitFor();
  expect(new URL(page.url()).search).toBe("?tab=maintenance");
  await page.reload();
  await getSection(page, "What visitors see").waitFor();
});

test("an unknown tunnel is not found", async () => {
  const page = await openTab(crypto.randomUUID(), "overview");
  await page.getByText("This tunnel does not exist").waitFor();
  await page.getByRole("link", { name: "Show all tunnels" }).waitFor();
});

test("an admin disconnects an agent, which reconnects; a member can't", async () => {
  const { id } = await serve();
  const [admin, member] = [
    await pages.api.colleague(owner, "admin"),
    await pages.api.colleague(owner, "member"),
  ];
  const page = await openTab(id, "overview", admin);
  const agentsSection = getSection(page, "Connected agents");
  const connection = await agentsSection.getByText(/connection [0-9a-f]{8}/).textContent();
  await agentsSection.getByRole("button", { name: /^Disconnect the agent at/ }).click();
  await page.getByText("The agent was disconnected.").waitFor();
  await waitUntil(async () => {
    const [text] = await agentsSection.getByText(/connection [0-9a-f]{8}/).allTextContents();
    return text !== undefined && text.slice(-8) !== connection!.slice(-8);
  });

  const memberPage = await openTab(id, "overview", member);
  await getSection(memberPage, "Connected agents")
    .getByText(/connection/)
    .waitFor();
  expect(await getSection(memberPage, "Connected agents").getByRole("button").count()).toBe(0);
});

test("an IP allowlist is set, with errors at its entries, and its removal is undone", async () => {
  const { id, visit } = await serve();
  const page = await openTab(id, "access");
  await clickButton(page, "Set up the IP allowlist");
  await page.getByLabel("Allowed addresses").fill("203.0.113.0/24\n10.0.0.0/40");
  await clickButton(page, "Save");
  await page.getByText("“10.0.0.0/40” must be an address block").waitFor();
  await page.getByRole("button", { name: "Add your address" }).click();
  expect(await page.getByLabel("Allowed addresses").inputValue()).toMatch(/\n(127\.0\.0\.1|::1)$/);
  await page.getByLabel("Allowed addresses").fill("203.0.113.7/24, 2001:db8::/32");
  await answerDialog(page, "Save");
  const list = page.getByRole("list", { name: "Allowed addresses" });
  expect(await list.getByRole("listitem").allTextContents()).toEqual([
    "203.0.113.0/24",
    "2001:db8::/32",
  ]);
  expect((await visit()).status).toBe(403);
  await clickButton(page, "Remove the IP allowlist");
  await list.waitFor({ state: "detached" });
  expect((await visit()).status).toBe(200);
  await clickButton(page, "Restore the list");
  await list.waitFor();
  expect((await findTunnel(id)).allowedCidrs).toEqual(["203.0.113.0/24", "2001:db8::/32"]);
});

test("a password is generated, set and removed", async () => {
  const { id, visit } = await serve();
  const page = await openTab(id, "access");
  await clickButton(page, "Set up a password");
  const field = page.getByRole("textbox", { name: "Password" });
  const first = await field.inputValue();
  expect(first).toMatch(/^[a-z0-9]{5}(-[a-z0-9]{5}){3}$/);
  await clickButton(page, "Generate another one");
  const password = await field.inputValue();
  expect(password).not.toBe(first);
  await answerDialog(page, "Save");
  await getSection(page, "Password").getByText("On", { exact: true }).waitFor();
  expect((await visit()).status).toBe(401);
  const credentials = Buffer.from(`visitor:${password}`).toString("base64");
  expect((await visit(`authorization: Basic ${credentials}\r\n`)).status).toBe(200);
  await clickButton(page, "Remove the password");
  await answerDialog(page, "Remove");
  await getSection(page, "Password").getByText("Off", { exact: true }).waitFor();
  expect((await visit()).status).toBe(200);
});

test("a sign-in is required and removed", async () => {
  const { id, visit } = await serve();
  const page = await openTab(id, "access");
  await clickButton(page, "Set up the sign-in");
  await page.getByLabel("Allowed email addresses").fill("ann@example.com\nbob");
  await clickButton(page, "Save");
  await page.getByText("“bob” must be an email address").waitFor();
  await page.getByLabel("Allowed email addresses").fill("ann@example.com");
  await page.getByLabel("Allowed email domains").fill("example.org");
  await answerDialog(page, "Save");
  await getSection(page, "Sign-in").getByText("On", { exact: true }).waitFor();
  expect((await visit()).status).toBe(401);
  await page.reload();
  const visitors = page.getByRole("list", { name: "Allowed visitors" }).getByRole("listitem");
  await visitors.first().waitFor();
  expect(await visitors.allTextContents()).toEqual(["ann@example.com", "@example.org"]);
  await clickButton(page, "Change the allowed visitors");
  expect(await page.getByLabel("Allowed email addresses").inputValue()).toBe("ann@example.com");
  expect(await page.getByLabel("Allowed email domains").inputValue()).toBe("example.org");
  await page.getByLabel("Allowed email domains").fill("");
  await answerDialog(page, "Save");
  await visitors.nth(1).waitFor({ state: "detached" });
  await clickButton(page, "Remove the sign-in");
  await answerDialog(page, "Remove");
  await getSection(page, "Sign-in").getByText("Off", { exact: true }).waitFor();
  expect((await visit()).status).toBe(200);
});

test("without an identity provider, the gate with a sign-in says what is needed instead of a button", async () => {
  const { id } = await create();
  const page = await pages.openAs(owner.email, "/tunnels");
  await page.route("**/auth/providers", (route) => route.fulfill({ json: { providers: [] } }));
  await page.goto(`${pages.origin}/tunnels/${id}?tab=access`);
  await getSection(page, "Sign-in").getByText("Needs an identity provider").waitFor();
  expect(await page.getByRole("button", { name: "Set up the sign-in" }).count()).toBe(0);
});

test("a visitor's token is minted and shown once", async () => {
  const { id, visit } = await serve();
  await owner.put(`/tunnels/${id}/policy`, { actions: [{ kind: "jwt_validation" }] });
  const page = await openTab(id, "access");
  await clickButton(page, "Mint a token");
  await page.getByRole("textbox", { name: "Visitor" }).fill("ann");
  await answerDialog(page, "Mint");
  const shown = page.getByRole("note", { name: "The new token" });
  await shown.getByText("ann", { exact: true }).waitFor();
  const minted = await shown.locator("code").textContent();
  expect((await visit()).status).toBe(401);
  expect((await visit(`authorization: Bearer ${minted}\r\n`)).status).toBe(200);
  await page.reload();
  await getSection(page, "Visitor tokens").waitFor();
  expect(await shown.count()).toBe(0);
});

test("maintenance starts with a message, and the preview shows what visitors get", async () => {
  const { id, host, visit } = await serve();
  const page = await openTab(id, "maintenance");
  const preview = page.getByRole("figure", { name: "The page for browsers" });
  for (const message of ["", "Back at <b>14:00</b>. \u202egnp.exe"]) {
    await page.getByLabel("Message to visitors").fill(message);
    await clickButton(page, message === "" ? "Start maintenance" : "Change the message");
    await getSection(page, "Maintenance").getByText("On", { exact: true }).waitFor();
    await waitUntil(async () => {
      const { body } = await visit();
      return body.toString().includes(message === "" ? "by its owner" : "14:00");
    });
    const html = await fetchPage(host);
    for (const text of await preview.locator("p").allTextContents()) {
      expect(html).toContain(text.replaceAll("<", "&lt;").replaceAll(">", "&gt;"));
    }
    const json = JSON.parse(await page.getByLabel("The response for programs").innerText());
    expect(json).toEqual(JSON.parse((await visit()).body.toString()));
  }
  await page.reload();
  const field = page.getByLabel("Message to visitors");
  await field.waitFor();
  expect(await field.inputValue()).toBe("Back at <b>14:00</b>. \u202egnp.exe");
  await clickButton(page, "End maintenance");
  await getSection(page, "Maintenance").getByText("Off", { exact: true }).waitFor();
  expect((await visit()).status).toBe(200);
});

/** The page as a browser gets it, without elements inside of its texts. */
async function fetchPage(host: string): Promise<string> {
  const request = `GET / HTTP/1.1\r\nhost: ${host}\r\naccept: text/html\r\n\r\n`;
  const { body, headers, status } = await exchange(pages.api.server.port, request);
  expect([status, findHeader(headers, "retry-after")]).toEqual([503, "30"]);
  return body.toString().replaceAll(/<\/?(a|code)[^>]*>/g, "");
}

test("capture settings are saved, and captured requests are deleted by name", async () => {
  const { id, name, visit } = await serve();
  await visit();
  const countCaptures = async () =>
    (await owner.get<CaptureSummary[]>(`/inspector?tunnel_id=${id}`)).body.length;
  await waitUntil(async () => (await countCaptures()) === 1);
  const page = await openTab(id, "capturing");
  await page.getByLabel("Redacted headers").fill("authorization\nX Key");
  await clickButton(page, "Save");
  await page.getByText("“X Key” must be a valid header name").waitFor();
  await page.getByLabel("Redacted headers").fill("authorization\nX-Key");
  await page.getByRole("tab", { name: "Access" }).click();
  await page.getByRole("tab", { name: "Capture" }).click();
  const others = { capture: true, bodies: true, redactHeaders: ["authorization", "x-other"] };
  await owner.put(`/tunnels/${id}/inspector`, others);
  await page.getByLabel("Capture bodies and messages").uncheck();
  await page.getByLabel("Allow replays").check();
  await clickButton(page, "Save");
  await page.getByText("The settings apply from the next request.").waitFor();
  const { body } = await owner.get<CaptureSettings>(`/tunnels/${id}/inspector`);
  expect(body).toEqual({
    id,
    capture: true,
    bodies: false,
    allowReplay: true,
    redactHeaders: ["authorization", "x-key", "x-other"],
    serverAllowsReplay: false,
  });
  expect(await page.title()).toBe(`${name}: Capture · Underpass`);

  await clickButton(page, "Delete all captured requests");
  const dialog = page.getByRole("dialog", { name: "Delete the captured requests?" });
  await dialog.getByRole("textbox").fill("another name");
  await dialog.getByRole("button", { name: "Delete" }).click();
  expect(await countCaptures()).toBe(1);
  await dialog.getByRole("textbox").fill(name);
  await answerDialog(page, "Delete");
  await waitUntil(async () => (await countCaptures()) === 0);
});

test("a tunnel is stopped, started and deleted by its name", async () => {
  const { id, name } = await serve();
  const page = await openTab(id, "settings");
  await clickButton(page, "Stop");
  await page.getByText("Stopped", { exact: true }).waitFor();
  await clickButton(page, "Start");
  await page.getByText("Live", { exact: true }).waitFor();
  await clickButton(page, "Delete the tunnel");
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await answerDialog(page, "Delete");
  await page.getByRole("heading", { level: 1, name: "Tunnels" }).waitFor();
  await page.getByText(`${name} was deleted.`).waitFor();
  expect(await findTunnel(id)).toBeUndefined();
});

test("a tunnel is shown as stopped when the server has confirmed it, and not before", async () => {
  const { id } = await create();
  const page = await openTab(id, "overview");
  const [sent, lost] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route(`**/tunnels/${id}/stop`, async (route) => {
    sent.resolve();
    await lost.promise;
    await route.abort("connectionrefused");
  });
  const stop = page.getByRole("button", { name: "Stop", exact: true });
  const stopped = page.getByText("Stopped", { exact: true });
  await page.evaluate(`window.shown = new Set();
    new MutationObserver(() => shown.add(document.querySelector(".tunnel-summary .badge").textContent))
      .observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true })`);
  await stop.click();
  await sent.promise;
  await stop.and(page.locator("[aria-busy=true]")).waitFor();
  lost.resolve();
  const notifications = page.getByRole("region", { name: "Notifications" });
  await notifications.getByText("The server can't be reached.").waitFor();
  await stop.and(page.locator(":not([aria-busy])")).waitFor();
  expect(await page.evaluate("[...shown]")).toEqual(["Waiting"]);
  await page.unroute(`**/tunnels/${id}/stop`);
  await stop.click();
  await stopped.waitFor();
  expect((await findTunnel(id)).stoppedAt).not.toBeNull();
});

test("a viewer sees every tab without buttons and commands that change something", async () => {
  const { id } = await create();
  const viewer = await pages.api.colleague(owner, "viewer");
  const page = await openTab(id, "access", viewer);
  for (const tab of ["Access", "Maintenance", "Capture", "Settings", "Overview"]) {
    await page.getByRole("tab", { name: tab }).click();
    await waitForContent(page);
    const buttons = await page.getByRole("tabpanel").getByRole("button").allTextContents();
    expect([tab, buttons.filter((text) => text !== "Copy")]).toEqual([tab, []]);
    expect([tab, await findChangingCommands(page)]).toEqual([tab, []]);
  }
});

test("axe finds nothing on any tab, and each fits a narrow screen", async () => {
  const { id } = await create(`landing-page-with-a-rather-long-name-${Date.now()}`);
  await owner.put(`/tunnels/${id}/ip-allowlist`, { cidrs: ["127.0.0.0/8", "::1"] });
  const page = await openTab(id, "overview");
  const summary = page.getByText("Do this on the command line");
  for (const tab of ["Overview", "Access", "Maintenance", "Capture", "Settings"]) {
    await page.getByRole("tab", { name: tab }).click();
    await waitForContent(page);
    // The previous tab's panel may still be there.
    await page.getByRole("tabpanel", { name: tab }).locator(summary).click();
    expect([tab, await findPageProblems(page)]).toEqual([tab, []]);
    // It is about the whole tab, so that it is below the sections and not in one.
    expect([tab, await page.getByRole("region").filter({ has: summary }).count()]).toEqual([
      tab,
      0,
    ]);
  }
  await clickButton(page, "Delete the tunnel");
  await getDialog(page).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
});

test("the selected tab is scrolled into view on a narrow screen", async () => {
  const { id } = await create(`landing-page-${Date.now()}`);
  const page = await openTab(id, "settings");
  await page.setViewportSize(NARROW);
  await page.reload();
  const tab = page.getByRole("tab", { name: "Settings" });
  await tab.waitFor();
  await waitUntil(async () => {
    const box = await tab.boundingBox();
    return box !== null && box.x + box.width <= NARROW.width;
  });
  expect(await findUnnamed(page)).toEqual([]);
});
