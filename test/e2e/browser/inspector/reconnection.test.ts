/** The live inspector of the dashboard while its connection is lost. */
import type { Page, WebSocketRoute } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { ACCESS_TOKEN_SECONDS } from "../../../../protocol/limits.ts";
import { signIn, usePages } from "../../../harness/browser/pages.ts";
import { startInspectedSite, type InspectedSite } from "../../../harness/browser/inspected-site.ts";

/** The server restarts: docs/protocols/live-view.md. */
const GOING_AWAY = 4503;

let site: InspectedSite;
const pages = usePages(async () => {
  site = await startInspectedSite("inspected-reconnection");
  return site.api;
});
afterAll(() => site.close());

test("after a lost connection the list continues without a gap or a repetition", async () => {
  const page = await pages.openAs(site.email, "/members");
  const connections: WebSocketRoute[] = [];
  let isDown = false;
  await page.routeWebSocket(/\/inspector\/ws/, (connection) => {
    if (isDown) return void connection.close({ code: GOING_AWAY });
    connection.connectToServer();
    connections.push(connection);
  });
  await page.goto(`${pages.origin}/requests`);
  const rows = page.locator("[data-id] .target");
  await page.getByText(/^Live/).waitFor();
  await site.visit("/gap/1");
  await rows.getByText("/gap/1").waitFor();

  isDown = true;
  await connections.at(-1)!.close({ code: GOING_AWAY });
  await page.getByText("Reconnecting").waitFor();
  await site.visit("/gap/2", "/gap/3");
  expect(await rows.allTextContents()).toEqual(["/gap/1"]);

  isDown = false;
  await rows.getByText("/gap/3").waitFor();
  await page.getByText(/^Live/).waitFor();
  await site.visit("/gap/4");
  await rows.getByText("/gap/4").waitFor();
  expect(await rows.allTextContents()).toEqual(["/gap/4", "/gap/3", "/gap/2", "/gap/1"]);
});

test("after a sleep that outlasted the access token and the connection, the list is live again without a gap or a reload", async () => {
  const page = await pages.open("/reset");
  await page.clock.install();
  let connections = 0;
  let lostConnections = 0;
  await page.routeWebSocket(/\/inspector\/ws/, (connection) => {
    const server = connection.connectToServer();
    connections += 1;
    const number = connections;
    const isLost = () => number <= lostConnections;
    server.onMessage((message) => isLost() || connection.send(message));
    connection.onMessage((message) => isLost() || server.send(message));
  });
  await page.goto(`${pages.origin}/requests?filter=path%3A%2Fsleep`);
  await signIn(page, site.email);
  await page.getByText(/^Live/).waitFor();
  await page.evaluate("window.isStillTheSamePage = true");
  const rows = page.locator("[data-id] .target");
  await site.visit("/sleep/1");
  await rows.getByText("/sleep/1").waitFor();

  // The debugger stops the script and its timers, which a page that Playwright keeps visible can't do by itself.
  const devTools = await page.context().newCDPSession(page);
  const stopped = new Promise((resolve) => devTools.once("Debugger.paused", resolve));
  await devTools.send("Debugger.enable");
  await devTools.send("Debugger.pause");
  await stopped;
  // Neither end learns of it.
  lostConnections = connections;
  await site.visit("/sleep/2", "/sleep/3");
  const isRenewed = await expireTokens(page);
  await devTools.send("Debugger.resume");
  await devTools.detach();
  await page.clock.fastForward(2 * ACCESS_TOKEN_SECONDS * 1000);
  // The answer to a ping is missing.
  await page.clock.fastForward(10_000);

  await rows.getByText("/sleep/3").waitFor();
  await page.getByText(/^Live/).waitFor();
  await site.visit("/sleep/4");
  await rows.getByText("/sleep/4").waitFor();
  expect(await rows.allTextContents()).toEqual(["/sleep/4", "/sleep/3", "/sleep/2", "/sleep/1"]);
  expect(await page.evaluate("window.isStillTheSamePage")).toBe(true);
  expect([isRenewed(), connections]).toEqual([true, 2]);
});

/** The service refuses the access tokens that the page has now. @returns whether the page has renewed its token since. */
async function expireTokens(page: Page): Promise<() => boolean> {
  let isRenewed = false;
  await page.route(/\/(auth|inspector)\b/, async (route) => {
    const request = route.request();
    if (request.isNavigationRequest() || isRenewed) return route.continue();
    if (request.url().includes("/auth/refresh")) {
      isRenewed = true;
      return route.continue();
    }
    const json = { error: "unauthorized", message: "The access token has expired." };
    return route.fulfill({ status: 401, json });
  });
  return () => isRenewed;
}
