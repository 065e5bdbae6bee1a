/** Opens the service's own pages in a real browser, and checks after each test that they caused no errors. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import PostalMime from "postal-mime";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { DASHBOARD_PATHS, type DashboardPath } from "../../../protocol/dashboard-paths.ts";
import type { AccountSummary } from "../../../protocol/schemas/accounts/accounts.ts";
import { getFirstCookie, PASSWORD, waitUntil, type TestApi } from "../server/api.ts";
import { openBrowser, openContext, openPage, openPageIn, type OpenedPage } from "./browser.ts";
import { startIdentityProvider, type IdentityProvider } from "../fakes/identity-provider.ts";

/** Pages with a single step, without the navigation. */
const STEP_PATHS: ReadonlySet<DashboardPath> = new Set([
  "/setup",
  "/activate",
  "/invitation",
  "/reset",
  "/two-factor",
]);
/** Pages with the navigation. */
export const SHELL_PATHS = DASHBOARD_PATHS.filter((path) => !STEP_PATHS.has(path));

/** As the browser logs it, even when the server has been stopped, or the code or style of a page could not be loaded. */
const FAILED_REQUEST =
  /Failed to fetch dynamically imported module|Refused to apply style from .* MIME type \('application\/json'\)|status of (?:4\d\d|50[123])|net::ERR_(?:CONNECTION_(?:REFUSED|RESET|CLOSED)|EMPTY_RESPONSE|INTERNET_DISCONNECTED|SOCKET_NOT_CONNECTED)/;

interface ReusableContext {
  context: BrowserContext;
  /**
   * A page of the origin, which alone reaches its storage. It stays open, so that the process that draws the pages
   * stays too, with their compiled scripts.
   */
  storage: Page;
}

export interface Pages {
  api: TestApi;
  origin: string;
  provider: IdentityProvider;
  /** Opens a page in a new browser, without being signed in. A test that sets its clock needs a new one. */
  open: (path: string, locale?: string) => Promise<Page>;
  /** Opens a page in a browser without cookies and storage, whose caches may have the code of the pages. */
  openSignedOut: (path: string) => Promise<Page>;
  /** Opens a page in a browser in which this person, who has no second factor, has signed in. */
  openAs(email: string, path?: string): Promise<Page>;
  /** Returns the link to this page from the newest mail to the address that has one. */
  findMailedLink(page: string, email: string): Promise<string>;
}

/**
 * For one test file. After each test it checks that no page logged errors, except failed requests that it handled, and
 * that pages sent requests only to the service and to the identity provider.
 *
 * @param startServer leases a shared server, or starts one. A shared one has the identity provider.
 */
export function usePages(startServer: () => Promise<TestApi>, hasProvider = true): Pages {
  let browser: Browser;
  const visits: (OpenedPage & { reusable?: ReusableContext })[] = [];
  /** Their caches have the scripts of the pages, which open in half of the time. */
  const idleContexts: ReusableContext[] = [];
  const pages = { open, openSignedOut, openAs, findMailedLink } as Pages;

  beforeAll(async () => {
    [pages.api, browser] = await Promise.all([startServer(), openBrowser()]);
    pages.origin = `http://localhost:${pages.api.server.port}`;
    if (!hasProvider) return;
    pages.provider = await startIdentityProvider(pages.api.fakePorts.identityProvider);
    await pages.provider.register(`${pages.origin}/auth/oauth/idp_a/callback`);
  });
  afterAll(async () => {
    await browser?.close();
    await pages.provider?.[Symbol.asyncDispose]();
    await pages.api?.stop();
  });
  afterEach(async () => {
    const origins = hasProvider ? [pages.origin, pages.provider.issuer] : [pages.origin];
    const allowedHosts = origins.map((url) => new URL(url).host);
    for (const { page, problems, hosts, reusable } of visits.splice(0)) {
      const context = page.context();
      if (reusable) {
        const opened = context.pages().filter((each) => each !== reusable.storage);
        await Promise.all(opened.map((each) => each.close()));
        await context.clearCookies();
        await context.clearPermissions();
        await context.setOffline(false);
        idleContexts.push(reusable);
      } else {
        await context.close();
      }
      expect(problems.filter((text) => !FAILED_REQUEST.test(text))).toEqual([]);
      expect([...hosts].filter((host) => !allowedHosts.includes(host))).toEqual([]);
    }
  });

  async function open(path: string, locale?: string): Promise<Page> {
    const opened = await openPage(browser, locale);
    visits.push(opened);
    await opened.page.goto(pages.origin + path);
    return opened.page;
  }

  async function openSignedOut(path: string): Promise<Page> {
    const { page } = await openReusable();
    await page.goto(pages.origin + path);
    return page;
  }

  async function openAs(email: string, path = "/"): Promise<Page> {
    const { page, storage } = await openReusable();
    const userId = await startSession(page.context(), email);
    await storage.evaluate(`localStorage["underpass-session"] = "${userId} ${Date.now()}"`);
    await page.goto(pages.origin + path);
    const { pathname } = new URL(page.url());
    if (!STEP_PATHS.has(pathname as DashboardPath)) await waitForContent(page);
    return page;
  }

  async function openReusable(): Promise<{ page: Page; storage: Page }> {
    const reusable = idleContexts.pop() ?? (await openReusableContext());
    const opened = await openPageIn(reusable.context);
    visits.push({ ...opened, reusable });
    await reusable.storage.evaluate("localStorage.clear()");
    return { page: opened.page, storage: reusable.storage };
  }

  async function openReusableContext(): Promise<ReusableContext> {
    const context = await openContext(browser);
    const storage = await context.newPage();
    await storage.goto(`${pages.origin}/favicon.svg`);
    return { context, storage };
  }

  /** Signs in as the sign-in page does, whose own tests use the form. @returns the user's id. */
  async function startSession(context: BrowserContext, email: string): Promise<string> {
    const userAgent = `Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/${browser.version()}`;
    const response = await fetch(`${pages.origin}/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": userAgent },
      body: JSON.stringify({ email, password: PASSWORD }),
    });
    const { user } = (await response.json()) as AccountSummary;
    const [name = "", value = ""] = getFirstCookie(response.headers).split("=", 2);
    const cookie = { name, value, domain: "localhost", path: "/auth", expires: -1 };
    await context.addCookies([{ ...cookie, httpOnly: true, secure: false, sameSite: "Lax" }]);
    return user.id;
  }

  function findMailedLink(page: string, email: string): Promise<string> {
    return waitUntil(async () => {
      const mails = await pages.api.readMailsTo(email);
      const texts = await Promise.all(
        mails.map(async (mail) => (await PostalMime.parse(mail)).text),
      );
      const links = texts.map((text) => text?.match(/http\S+/g)?.find((url) => url.includes(page)));
      return links.findLast((link) => link !== undefined)?.replace(pages.origin, "");
    });
  }
  return pages;
}

export async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.getByLabel("Email address").fill(email);
  await page.getByLabel("Password").fill(password);
  await clickButton(page, "Sign in");
}

/** Waits until every section has loaded: content that arrives later can move or replace a button. */
export async function waitForContent(page: Page): Promise<void> {
  await page.getByRole("banner").waitFor();
  await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
  await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
}

export async function clickButton(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name, exact: true }).click();
}

/** A section of a page. */
export function getSection(page: Page, name: string) {
  return page.getByRole("region", { name, exact: true });
}

/** An entry of a list on the page. */
export function getRow(page: Page, hasText: string) {
  return page.getByRole("main").getByRole("listitem").filter({ hasText });
}

/** Opens the menu of an entry, and chooses an item of it. */
export async function chooseAction(page: Page, entry: string, item: string): Promise<void> {
  await clickButton(page, `Actions for ${entry}`);
  await page.getByRole("menuitem", { name: item }).click();
}

/** Saves the token that is shown once. @returns it. */
export async function saveNewToken(page: Page): Promise<string> {
  const dialog = page.getByRole("dialog", { name: /^Save the / });
  const token = await dialog.locator("code").first().textContent();
  await dialog.getByLabel("I have saved it").check();
  await answerDialog(page, "Close");
  return token ?? "";
}

/** The open dialog. A notification has the same role. */
export function getDialog(page: Page) {
  return page.locator(".dialog");
}

/** Clicks a button of the open dialog, and waits until the dialog has closed. */
export async function answerDialog(page: Page, name: string): Promise<void> {
  const dialog = getDialog(page);
  await dialog.getByRole("button", { name, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}
