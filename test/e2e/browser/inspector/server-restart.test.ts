/** Pages that are open while the server is killed, or stopped and started again. */
import { rm } from "node:fs/promises";
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import type { Connection } from "../../../../protocol/schemas/tunnels/connections.ts";
import { startInspectedSite, type InspectedSite } from "../../../harness/browser/inspected-site.ts";
import { getSection, usePages } from "../../../harness/browser/pages.ts";
import { createPreparedDir } from "../../../harness/directories.ts";
import { reservePort } from "../../../harness/ports.ts";
import { waitUntil } from "../../../harness/server/api.ts";
import { startServer, type TestServer } from "../../../harness/server/server.ts";

let dataDir: string;
let site: InspectedSite;
let server: TestServer;
let options: { dataDir: string; env: Record<string, string> };
const pages = usePages(async () => {
  dataDir = await createPreparedDir();
  options = { dataDir, env: { PORT: String(await reservePort()) } };
  site = await startInspectedSite("inspected-restarts", options);
  server = site.api.server;
  return site.api;
}, false);
afterAll(async () => {
  await site?.close();
  await server?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

test.each([
  ["a kill -9 of workerd", "killed", killWorkerd],
  ["a stop and a start", "restarted", restart],
])("after %s, open pages continue by themselves and miss no request", async (_, word, act) => {
  const overview = await pages.openAs(site.email, "/");
  await getSection(overview, "Connected now").getByText("Live", { exact: true }).waitFor();
  const inspector = await pages.openAs(site.email, `/requests?filter=path%3A%2F${word}`);
  const rows = inspector.locator("[data-id] .target");
  await inspector.getByText(/^Live/).waitFor();
  await site.visit(`/${word}/1`);
  await rows.getByText(`/${word}/1`).waitFor();
  for (const page of [overview, inspector]) await page.evaluate("window.isStillTheSamePage = true");

  const reconnect = await holdReconnection(inspector);
  await act(overview);
  await inspector.getByText("Reconnecting").waitFor();
  await waitUntil(isAgentConnected);
  await site.visit(`/${word}/2`, `/${word}/3`);
  expect(await rows.allTextContents()).toEqual([`/${word}/1`]);

  await reconnect();
  await rows.getByText(`/${word}/3`).waitFor();
  await inspector.getByText(/^Live/).waitFor();
  await site.visit(`/${word}/4`);
  await rows.getByText(`/${word}/4`).waitFor();
  expect(await rows.allTextContents()).toEqual([4, 3, 2, 1].map((n) => `/${word}/${n}`));
  await getBanner(overview).waitFor({ state: "detached" });
  await getSection(overview, "Connected now").getByText("Live", { exact: true }).waitFor();
  for (const page of [overview, inspector]) {
    expect(await page.evaluate("window.isStillTheSamePage")).toBe(true);
  }
});

const getBanner = (page: Page) =>
  page.getByRole("status").filter({ hasText: "The server does not answer." });

/** The server starts it again at once, so that most pages do not notice. */
async function killWorkerd(): Promise<void> {
  process.kill(await server.getPid("workerd"), "SIGKILL");
}

async function restart(overview: Page): Promise<void> {
  await server.stop();
  await getBanner(overview).waitFor();
  await getSection(overview, "Connected now").getByText("Live", { exact: true }).waitFor();
  server = await startServer(options);
}

/** The page connects only after the returned function was called. */
async function holdReconnection(page: Page): Promise<() => Promise<void>> {
  const released = Promise.withResolvers<void>();
  await page.route(/\/auth\/me$/, async (route) => {
    await released.promise;
    await route.continue();
  });
  return async () => {
    released.resolve();
    await page.unrouteAll({ behavior: "wait" });
  };
}

async function isAgentConnected(): Promise<boolean> {
  const reply = await site.owned.owner.get<Connection[]>("/connections").catch(() => undefined);
  return reply?.status === 200 && reply.body.length > 0;
}
