/** What a page does when the session, the network or the time changes while it is open. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Organization } from "../../../../protocol/schemas/organizations/organizations.ts";
import { ACCESS_TOKEN_SECONDS } from "../../../../protocol/limits.ts";
import { mintToken, newEmail, PASSWORD, startApi } from "../../../harness/server/api.ts";
import { findAccessibilityProblems } from "../../../harness/browser/page-checks.ts";
import { clickButton, getSection, signIn, usePages } from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

async function openTab(page: Page, path: string): Promise<Page> {
  const [tab] = await Promise.all([
    page.waitForEvent("popup"),
    page.evaluate(`void window.open('${path}')`),
  ]);
  return tab;
}

test("signing out in one tab signs out all of them, and signing in continues all of them", async () => {
  const { email } = await pages.api.owner();
  const page = await pages.openAs(email, "/members");
  const other = await openTab(page, "/audit?range=24h");
  await getSection(other, "Events").getByRole("listitem").first().waitFor();
  const inspector = await openTab(page, "/requests");
  await inspector.getByText(/^Live/).waitFor();
  await page.getByRole("button", { name: "Your account" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  for (const tab of [page, other, inspector]) await tab.getByLabel("Password").waitFor();
  expect(await inspector.getByRole("grid", { name: "Requests" }).count()).toBe(0);
  expect(await other.getByText(email).count()).toBe(0);
  await signIn(page, email);
  await getSection(page, "Members").getByText(email).waitFor();
  await getSection(other, "Events").getByRole("listitem").first().waitFor();
  await inspector.getByText(/^Live/).waitFor();
  expect(other.url()).toBe(`${pages.origin}/audit?range=24h`);
});

test("a tab that notices late that its session has ended does not end the next session of another tab", async () => {
  const { email, userId } = await pages.api.owner();
  const page = await pages.openAs(email, "/members");
  const late = await openTab(page, "/projects");
  await late.getByRole("heading", { level: 1, name: "Projects" }).waitFor();
  const refused = Promise.withResolvers<void>();
  const signedIn = Promise.withResolvers<void>();
  const received = late.waitForEvent("requestfinished", (request) =>
    request.url().includes("/auth/refresh"),
  );
  await late.route("**/auth/refresh*", async (route) => {
    const response = await route.fetch();
    refused.resolve();
    await signedIn.promise;
    await route.fulfill({ response });
  });
  // The late tab loads again after the sign-in, which would abort its request.
  await late.route("**/projects", async (route) => {
    await received;
    await route.continue();
  });
  await pages.api.sql("delete from sessions where user_id = $1", [userId]);
  await late.keyboard.press("Control+k");
  await refused.promise;
  await page.keyboard.press("Control+k");
  await page.getByRole("status").filter({ hasText: "Your session has ended." }).waitFor();
  await signIn(page, email);
  await getSection(page, "Members").getByText(email).waitFor();
  signedIn.resolve();
  await received;
  await late.unrouteAll({ behavior: "ignoreErrors" });
  await late.getByRole("heading", { level: 1, name: "Projects" }).waitFor();
  await page.reload();
  await getSection(page, "Members").getByText(email).waitFor();
});

test("a late notice of another tab that the session has ended does not empty the sign-in form", async () => {
  const { email } = await pages.api.owner();
  const page = await pages.openAs(email, "/members");
  await page.getByRole("button", { name: "Your account" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByLabel("Email address").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  const notice = "{ key: 'underpass-session', newValue: null }";
  await page.evaluate(`dispatchEvent(new StorageEvent('storage', ${notice}))`);
  await clickButton(page, "Sign in");
  await getSection(page, "Members").getByText(email).waitFor();
});

test("a page says that it loads while a slow server has not answered", async () => {
  const { email } = await pages.api.owner();
  const page = await pages.openAs(email, "/members");
  const answered = Promise.withResolvers<void>();
  await page.route("**/auth/me", async (route) => {
    await answered.promise;
    await route.continue();
  });
  await page.reload();
  await page.getByRole("status", { name: "Loading" }).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  answered.resolve();
  await getSection(page, "Members").getByText(email).waitFor();
});

test("when the session has ended, each tab says so", async () => {
  const { email, userId } = await pages.api.owner();
  const page = await pages.openAs(email, "/members");
  const other = await openTab(page, "/projects");
  await other.getByRole("heading", { level: 1, name: "Projects" }).waitFor();
  await pages.api.sql("delete from sessions where user_id = $1", [userId]);
  // It sends requests, whatever the tab shows by now.
  await page.keyboard.press("Control+k");
  for (const tab of [page, other]) {
    await tab.getByRole("status").filter({ hasText: "Your session has ended." }).waitFor();
  }
});

test.each(["password", "provider"])(
  "a link to a page with a filter leads there after a sign-in by %s",
  async (way) => {
    const email = way === "password" ? (await pages.api.owner()).email : newEmail();
    pages.provider.user = { sub: email, email, email_verified: true };
    const path = "/audit?text=signed&range=7d";
    const page = await pages.open(path);
    if (way === "password") await signIn(page, email);
    else await page.getByRole("link", { name: "Continue with single sign-on" }).click();
    await page.getByRole("heading", { level: 1, name: "Audit log" }).waitFor();
    expect(page.url()).toBe(pages.origin + path);
    expect(await page.getByLabel("Search").inputValue()).toBe("signed");
    expect(await page.title()).toBe("Audit log · Underpass");
  },
);

test("without a network the page keeps what it shows, says so, and is live again by itself", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/audit");
  await getSection(page, "Events").getByRole("listitem").first().waitFor();
  await page.evaluate("window.isStillTheSamePage = true");
  await page.context().setOffline(true);
  const banner = page.getByRole("status").filter({ hasText: "You are offline." });
  await banner.waitFor();
  await getSection(page, "Events").getByText("signed in").first().waitFor();
  await mintToken(owner, { name: "meanwhile" });
  await page.context().setOffline(false);
  await banner.waitFor({ state: "detached" });
  await getSection(page, "Events").getByText("minted the token").waitFor();
  expect(await page.evaluate("window.isStillTheSamePage")).toBe(true);
  expect(await page.locator("[role=alert], .notification").count()).toBe(0);
});

test("a page that was opened while the server could not be reached loads by itself when it can", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/audit");
  await page.route(/\/auth\//, (route) => route.abort("connectionrefused"));
  await page.reload();
  await page.getByRole("alert").filter({ hasText: "The server can't be reached." }).waitFor();
  await page.unrouteAll();
  await page.evaluate("dispatchEvent(new Event('online'))");
  await page.getByRole("heading", { level: 1, name: "Audit log" }).waitFor();
});

test("after a sleep that outlasted the access token, the page is live again without a reload", async () => {
  const owner = await pages.api.owner();
  const page = await pages.open("/reset");
  await page.clock.install();
  await page.goto(`${pages.origin}/audit`);
  await signIn(page, owner.email);
  await getSection(page, "Events").getByRole("listitem").first().waitFor();
  await page.evaluate("window.isStillTheSamePage = true");
  await mintToken(owner, { name: "meanwhile" });
  await page.clock.fastForward(2 * ACCESS_TOKEN_SECONDS * 1000);
  await getSection(page, "Events").getByText("minted the token").waitFor();
  expect(await page.evaluate("window.isStillTheSamePage")).toBe(true);
});

test("while the server restarts the page keeps what it shows, and continues without a reload", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/audit");
  await getSection(page, "Events").getByText("signed in").first().waitFor();
  await page.evaluate("window.isStillTheSamePage = true");
  const refused = page.waitForResponse((response) => response.status() === 503);
  await page.route(/\/events/, (route) =>
    route.fulfill({ status: 503, json: { error: "unavailable", message: "The server restarts." } }),
  );
  await refused;
  expect(await getSection(page, "Events").getByText("signed in").count()).toBeGreaterThan(0);
  await mintToken(owner, { name: "meanwhile" });
  await page.unrouteAll();
  await getSection(page, "Events").getByText("minted the token").waitFor();
  expect(await page.evaluate("window.isStillTheSamePage")).toBe(true);
});

test("a page whose code the server does not have is reloaded once, then says so, and the others work", async () => {
  const { email } = await pages.api.owner();
  const page = await pages.openAs(email, "/members");
  let attempts = 0;
  await page.route(/domains-page-.*\.js$/, (route) => {
    attempts += 1;
    return route.fulfill({ status: 404 });
  });
  const open = (name: string) => page.getByRole("link", { name, exact: true }).click();
  const notice = page.getByRole("alert").filter({ hasText: "This could not be loaded." });
  await open("Custom domains");
  await notice.waitFor();
  // Once by the link, and once by the reload.
  expect(attempts).toBe(2);
  await open("Tokens");
  await page.getByRole("heading", { level: 1, name: "Tokens" }).waitFor();
  expect(await notice.count()).toBe(0);
  await open("Custom domains");
  await notice.waitFor();
  await page.unrouteAll();
  await notice.getByRole("button", { name: "Reload the page" }).click();
  await page.getByRole("heading", { level: 1, name: "Custom domains" }).waitFor();
});

test("a part that fails says which request it was, and the rest of the page works", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/billing");
  await page.route(/\/members$/, (route) =>
    route.request().isNavigationRequest()
      ? route.continue()
      : route.fulfill({
          status: 400,
          headers: { "underpass-request-id": "request-4711" },
          json: { error: "invalid_request", message: "It is broken." },
        }),
  );
  await page.getByRole("link", { name: "Members" }).click();
  const section = getSection(page, "Members");
  await section.getByText("request-4711").waitFor();
  await getSection(page, "Invitations").getByText("There are no open invitations.").waitFor();
  await page.unrouteAll();
  await section.getByRole("button", { name: "Try again" }).click();
  await section.getByText(owner.email).waitFor();
});

test("a page follows the role of its user, and after their removal from the organization shows another one", async () => {
  const owner = await pages.api.owner();
  const colleague = await pages.api.colleague(owner, "viewer");
  const page = await pages.openAs(colleague.email, "/tokens");
  const { body: organization } = await owner.get<Organization>(`/orgs/${owner.orgId}`);
  const shown = page.getByRole("banner").getByRole("button").first();
  await shown.filter({ hasText: organization.name }).waitFor();
  const mint = page.getByRole("button", { name: "Mint a token" });
  expect(await mint.count()).toBe(0);
  const path = `/orgs/${owner.orgId}/members/${colleague.userId}`;
  await owner.patch(path, { role: "member" });
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await mint.click();
  await page.getByLabel("Name", { exact: true }).fill("too-late");

  await owner.delete(path);
  const refused = page.waitForResponse((response) => response.url().endsWith("/tokens"));
  await clickButton(page, "Mint");
  await refused;
  await page.getByText(`You are no longer a member of ${organization.name}.`).waitFor();
  await shown.filter({ hasNotText: organization.name }).waitFor();
  await page.getByRole("heading", { name: "No machine has a token yet" }).waitFor();
});
