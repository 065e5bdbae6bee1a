/** The live inspector of the dashboard while its connection is lost. */
import type { WebSocketRoute } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { usePages } from "../../../harness/browser/pages.ts";
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
  const rows = page.locator("[data-id] .path > bdi");
  await page.getByText("Live").waitFor();
  await site.visit("/gap/1");
  await rows.getByText("/gap/1").waitFor();

  isDown = true;
  await connections.at(-1)!.close({ code: GOING_AWAY });
  await page.getByText("Reconnecting").waitFor();
  await site.visit("/gap/2", "/gap/3");
  expect(await rows.allTextContents()).toEqual(["/gap/1"]);

  isDown = false;
  await rows.getByText("/gap/3").waitFor();
  await page.getByText("Live").waitFor();
  await site.visit("/gap/4");
  await rows.getByText("/gap/4").waitFor();
  expect(await rows.allTextContents()).toEqual(["/gap/4", "/gap/3", "/gap/2", "/gap/1"]);
});
