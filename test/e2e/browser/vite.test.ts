/**
 * A development server with hot reload, shared without configuring it. Vite rejects unknown host names, so the service
 * has a domain here that Vite does not allow.
 */
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { createServer, type ViteDevServer } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expose } from "../../../agent/expose.ts";
import { mintToken, startApi, type TestApi } from "../../harness/server/api.ts";
import { openBrowser, openPage } from "../../harness/browser/browser.ts";
import { createTemporaryDir } from "../../harness/directories.ts";

const DOMAIN = "tunnels.test";
let api: TestApi;
let browser: Browser;
let dir: string;
let vite: ViteDevServer;

beforeAll(async () => {
  [api, browser] = await Promise.all([
    startApi({ env: { SERVICE_DOMAIN: DOMAIN } }),
    openBrowser(DOMAIN),
  ]);
  dir = await createTemporaryDir();
  await mkdir(join(dir, "src"));
  await writeFile(
    join(dir, "index.html"),
    '<!doctype html><h1></h1><script type="module" src="/src/main.js"></script>',
  );
  await writeFile(
    join(dir, "src/main.js"),
    `import { text } from "./text.js";
const show = (text) => (document.querySelector("h1").textContent = text);
show(text);
import.meta.hot.accept("./text.js", (changed) => show(changed.text));`,
  );
  await saveText("first");
  vite = await createServer({
    root: dir,
    configFile: false,
    logLevel: "silent",
    cacheDir: join(dir, "cache"),
    server: { host: "127.0.0.1", port: 0 },
  });
  await vite.listen();
});
afterAll(async () => {
  await browser?.close();
  await vite?.close();
  await api?.stop();
  await rm(dir, { recursive: true });
});

const saveText = (text: string) =>
  writeFile(join(dir, "src/text.js"), `export const text = ${JSON.stringify(text)};`);

test("Vite works through a tunnel with no flag, and replaces changed modules in the open page", async () => {
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner);
  const tunnel = await expose({
    port: Number(new URL(vite.resolvedUrls?.local[0] ?? "").port),
    server: api.server.url,
    token: Buffer.from(wireBytes, "base64"),
  });
  expect(new URL(tunnel.url).hostname.endsWith(`.${DOMAIN}`)).toBe(true);
  const refused = once(tunnel.events, "notice");
  const { page, problems } = await openPage(browser);
  const connected = page.waitForEvent("console", (line) => line.text().includes("connected."));
  await page.goto(tunnel.url);
  await page.getByRole("heading", { name: "first" }).waitFor();
  await connected;
  expect(await refused).toEqual([expect.stringContaining("refuses the public host name")]);
  await page.evaluate("window.isStillTheSamePage = true");
  await saveText("second");
  await page.getByRole("heading", { name: "second" }).waitFor();
  expect(await page.evaluate("window.isStillTheSamePage")).toBe(true);
  expect(problems).toEqual([]);
  await page.close();
  await tunnel.close();
});
