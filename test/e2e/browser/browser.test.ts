/** A tunnel in a real browser: a page with all kinds of requests, and the service's own pages. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expose } from "../../../agent/expose.ts";
import { ROOT } from "../../../self-host/build/build.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { openBrowser, openPage } from "../../harness/browser/browser.ts";
import { startLocalSite } from "../../harness/tunnel/local-site.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { reservePort } from "../../harness/ports.ts";
import { typeCommand } from "../../harness/terminal.ts";

let api: TestApi;
let owner: Person;
let browser: Browser;
beforeAll(async () => {
  [api, browser] = await Promise.all([startApi(), openBrowser()]);
  owner = await api.owner();
});
afterAll(async () => {
  await browser?.close();
  await api?.stop();
});

async function share(port: number) {
  const { wireBytes } = await mintToken(owner);
  return expose({ port, server: api.server.url, token: Buffer.from(wireBytes, "base64") });
}

test("a page works with its script, image, form post, server-sent events and WebSocket", async () => {
  await using site = await startLocalSite();
  const tunnel = await share(site.port);
  const { page, problems, hosts } = await openPage(browser);
  await page.goto(tunnel.url);
  await page.waitForFunction("met.closed && met.posted && met.events.length === 3");
  expect(await page.evaluate("met")).toEqual({
    posted: "posted ✓",
    events: ["first", "second", "last"],
    messages: ["one", "two", "1,2,3"],
    closed: ["chat", 4001, "enough"],
  });
  expect(await page.evaluate("document.images[0].naturalWidth")).toBe(1);
  expect(problems).toEqual([]);
  expect([...hosts]).toEqual([new URL(tunnel.url).host]);
  await page.close();
  await tunnel.close();
});

test.each([
  ["is offline", "agent_offline", "The tunnel is offline", 502],
  ["has no local server", "origin_unreachable", "The local server does not respond", 502],
  ["does not exist", "tunnel_not_found", "No tunnel here", 404],
])(
  "a tunnel that %s has a page that says so, also to screen readers, without other requests",
  async (...row) => {
    const [, code, title, status] = row;
    const tunnel = await share(await reservePort());
    if (code === "agent_offline") await tunnel.close();
    const url = code === "tunnel_not_found" ? api.server.tunnelUrl("nobody") : tunnel.url;
    const { page, problems, hosts } = await openPage(browser);
    const answer = await page.goto(url);
    expect(answer?.status()).toBe(status);
    expect(await page.title()).toBe(title);
    expect(await page.locator("html").getAttribute("lang")).toBe("en");
    const snapshot = await page.locator("body").ariaSnapshot();
    expect(snapshot).toContain(`- main:\n  - heading "${title}" [level=1]\n  - paragraph:`);
    expect(snapshot).toContain(code);
    expect(problems.filter((text) => !text.includes(`status of ${status}`))).toEqual([]);
    expect([...hosts]).toEqual([new URL(url).host]);
    await page.close();
    await tunnel.close();
  },
);

test("a person approves a waiting machine, which then opens tunnels", async () => {
  const home = await createTemporaryDir();
  await using site = await startLocalSite();
  const agent = (args: string) =>
    typeCommand(`node ${join(ROOT, "agent/bin/launch.js")} ${args}`, {
      cwd: home,
      env: { HOME: home, XDG_CONFIG_HOME: home },
    });
  await using login = agent(`login --server ${api.server.url} --label "<b>my laptop</b>"`);
  const [, address = ""] = await login.waitForOutput(/^ +(http:\S+)$/m);
  const [, code = ""] = await login.waitForOutput(/show the code ([A-Z]{4}-[A-Z]{4})/);

  const { page, problems, hosts } = await openPage(browser);
  await page.goto(address);
  await page.getByLabel("Email address").fill(owner.email);
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "is wrong" }).waitFor();
  await page.getByLabel("Password").fill(owner.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText(code).waitFor();
  expect(await page.locator("#machine").textContent()).toBe("<b>my laptop</b>");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Done.").waitFor();
  expect(problems.filter((text) => !text.includes("status of 401"))).toEqual([]);
  expect([...hosts]).toEqual([new URL(address).host]);

  expect(await login.exit, login.output).toBe(0);
  await using shared = agent(`http ${site.port} --json`);
  const [, url = ""] = await shared.waitForOutput(/"event":"ready".*"url":"([^"]+)"/);
  await page.goto(url);
  expect(await page.getByRole("heading").textContent()).toBe("A site");
  await page.close();
  expect(await shared.interrupt()).toBe(0);
  await rm(home, { recursive: true });
});

test("the activation page reports a wrong code, and runs no script or style but its own", async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(`http://localhost:${api.server.port}/activate`);
  await page.getByLabel("Email address").fill(owner.email);
  await page.getByLabel("Password").fill(owner.password);
  await page.keyboard.press("Enter");
  await page.getByLabel("Code from your command line").fill("BCDF-GHJK");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "The code is wrong" }).waitFor();

  problems.length = 0;
  await page.evaluate(`{
    const [script, style] = ["script", "style"].map((name) => document.createElement(name));
    script.append("window.slippedIn = true");
    style.append("main { display: none }");
    document.body.append(script, style);
  }`);
  expect(await page.evaluate("window.slippedIn")).toBeUndefined();
  expect(await page.getByRole("main").isVisible()).toBe(true);
  expect(problems.join()).toContain("will not be executed");
  expect(problems.join()).toContain("style violates the following Content Security Policy");
  await page.close();
});
