/** Where the focus is while a button acts, and after it has disappeared, in a real browser. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { startApi } from "../../harness/server/api.ts";
import { getDialog, usePages, waitForContent } from "../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

async function goTo(page: Page, path: string): Promise<void> {
  await page.goto(pages.origin + path);
  await waitForContent(page);
}

/** With the keyboard. Some buttons appear after the rest of the page. */
async function press(page: Page, name: string): Promise<void> {
  const button = page.getByRole("main").getByRole("button", { name, exact: true });
  await button.waitFor();
  await button.focus();
  await page.keyboard.press("Enter");
}

/** A button that is still busy is disabled. */
async function waitForFocus(page: Page, role: "button" | "heading", name: string): Promise<void> {
  const element = page.getByRole("main").getByRole(role, { name, exact: true, disabled: false });
  await element.and(page.locator(":focus")).waitFor();
}

/** Holds requests with this method back. @returns a function that sends them, and how many there were. */
async function holdRequests(page: Page, path: string, method: string) {
  const held = Promise.withResolvers<void>();
  let count = 0;
  await page.route(`**${path}`, async (route) => {
    if (route.request().method() === method) {
      count += 1;
      await held.promise;
    }
    await route.continue();
  });
  return { release: () => held.resolve(), count: () => count };
}

test("a button keeps the focus while it acts, and also when it becomes its opposite", async () => {
  const owner = await pages.api.owner();
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  const page = await pages.openAs(owner.email, `/tunnels/${tunnel.id}`);
  const stopping = await holdRequests(page, `/tunnels/${tunnel.id}/stop`, "POST");
  await press(page, "Stop");
  const busy = page.locator("[aria-busy=true]").and(page.locator(":focus"));
  await busy.waitFor();
  // It does not act twice.
  await page.keyboard.press("Enter");
  stopping.release();
  await waitForFocus(page, "button", "Start");
  expect(stopping.count()).toBe(1);
  await page.keyboard.press("Enter");
  await waitForFocus(page, "button", "Stop");
});

test("Enter in a field does not send a form twice", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/domains");
  const adding = await holdRequests(page, "/domains", "POST");
  await press(page, "Add a domain");
  const dialog = getDialog(page);
  await dialog.getByLabel("Domain").fill(`${crypto.randomUUID()}.example`);
  await page.keyboard.press("Enter");
  await dialog.locator("[aria-busy=true]").waitFor();
  await page.keyboard.press("Enter");
  adding.release();
  await dialog.waitFor({ state: "detached" });
  expect(adding.count()).toBe(1);
});

test("when a button disappears, the closest one has the focus, or else a heading", async () => {
  const owner = await pages.api.owner();
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  await owner.put(`/tunnels/${tunnel.id}/ip-allowlist`, { cidrs: ["192.0.2.0/24"] });
  await owner.put(`/tunnels/${tunnel.id}/maintenance`, {});
  const page = await pages.openAs(owner.email);
  await press(page, "Hide this notice");
  await waitForFocus(page, "heading", "Overview");

  await goTo(page, `/tunnels/${tunnel.id}?tab=maintenance`);
  await press(page, "End maintenance");
  await waitForFocus(page, "button", "Start maintenance");

  await goTo(page, `/tunnels/${tunnel.id}?tab=access`);
  await press(page, "Remove the IP allowlist");
  await waitForFocus(page, "button", "Set up the IP allowlist");

  await goTo(page, "/me");
  await press(page, "Set up");
  await press(page, "Cancel");
  await waitForFocus(page, "button", "Set up");
});

test("a menu whose action takes time keeps its button, which has the focus afterward", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/audit");
  const loading = await holdRequests(page, "/events?limit=1000", "GET");
  await press(page, "Export");
  await page.getByRole("menuitem", { name: "As JSON" }).click();
  await page.getByRole("button", { name: "Cancel" }).waitFor();
  await waitForFocus(page, "button", "Export");
  loading.release();
  await page.getByText(/events were exported/).waitFor();
  await waitForFocus(page, "button", "Export");
});

test("Enter twice on a dangerous button does not confirm it, unless a name is typed first", async () => {
  const owner = await pages.api.owner();
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  await owner.put(`/tunnels/${tunnel.id}/auth`, { username: "team", password: "correct horse" });
  const page = await pages.openAs(owner.email, `/tunnels/${tunnel.id}?tab=access`);
  const focused = getDialog(page).locator(":focus");
  await press(page, "Remove the password");
  await focused.and(page.getByRole("button", { name: "Cancel" })).waitFor();
  await page.keyboard.press("Enter");
  await waitForFocus(page, "button", "Remove the password");

  await goTo(page, `/tunnels/${tunnel.id}?tab=settings`);
  await press(page, "Delete the tunnel");
  await focused.and(page.getByLabel(`Type ${tunnel.name} to confirm`)).waitFor();
});
