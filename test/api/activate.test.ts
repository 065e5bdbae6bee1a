import chromium from "@sparticuz/chromium";
import { chromium as browsers, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startApi, until, type Person, type TestApi } from "../harness/api.ts";

let api: TestApi;
let owner: Person;
let browser: Browser;
/** This build of the browser runs in one process, which does not outlive its first page. */
let page: Page;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  browser = await browsers.launch({
    executablePath: await chromium.executablePath(),
    args: chromium.args,
  });
  page = await browser.newPage();
});
afterAll(async () => {
  await browser?.close();
  await api?.stop();
});

interface Started {
  device_code: string;
  user_code: string;
  verification_uri_complete: string;
}

test("a person signs in on the page, sees which machine asks, and lets it in", async () => {
  const { body: started } = await api.stranger.post<Started>("/auth/cli/start", {
    label: "<b>my laptop</b>",
  });
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  await page.goto(started.verification_uri_complete);
  expect(complaints).toEqual([]);

  await page.getByLabel("E-mail address").fill(owner.email);
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await until(async () => (await page.getByRole("alert").textContent())?.includes("Wrong"));

  await page.getByLabel("Password").fill(owner.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText(started.user_code).waitFor();
  expect(await page.locator("#machine").textContent()).toBe("<b>my laptop</b>");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Done.").waitFor();

  const collected = await api.stranger.post("/auth/cli/poll", {
    device_code: started.device_code,
  });
  expect(collected).toMatchObject({ status: 200, body: { label: "<b>my laptop</b>" } });
});

test("whoever comes without a code is asked for it, and told when it is wrong", async () => {
  await page.goto(`http://localhost:${api.server.port}/activate`);
  await page.getByLabel("E-mail address").fill(owner.email);
  await page.getByLabel("Password").fill(owner.password);
  await page.keyboard.press("Enter");
  await page.getByLabel("Code from your command line").fill("BCDF-GHJK");
  await page.keyboard.press("Enter");
  await until(async () => (await page.getByRole("alert").textContent())?.includes("No machine"));
});
