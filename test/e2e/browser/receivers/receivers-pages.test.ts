/** The pages of webhook receivers, in a real browser. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { DeliveryPage, Receiver } from "../../../../protocol/schemas/webhooks.ts";
import { createReceiver, deliver, SECRET } from "../../../harness/fakes/vendor.ts";
import { startApi, type Person } from "../../../harness/server/api.ts";
import { findPageProblems } from "../../../harness/browser/page-checks.ts";
import {
  answerDialog,
  clickButton,
  getDialog,
  getSection,
  usePages,
  waitForContent,
} from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

const STORED_DELIVERIES = 12;
/** On a screen of 1280 pixels. */
const NAME_COLUMN_MIN_PX = 220;
const VALIDATORS = ["code_host", "chat_app", "payments", "generic_hmac_sha256"] as const;

const openReceiver = (person: Person, { id }: Receiver, query = ""): Promise<Page> =>
  pages.openAs(person.email, `/receivers/${id}${query}`);

async function readDeliveries(owner: Person, { id }: Receiver): Promise<DeliveryPage["events"]> {
  return (await owner.get<DeliveryPage>(`/webhook-receivers/${id}/events`)).body.events;
}

/** As when the user changes to another tab and back. */
async function setVisibility(page: Page, state: "hidden" | "visible"): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
  `);
}

test("a receiver is created, and its first delivery read, with the keyboard alone", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/receivers");
  await page.getByText("Create your first webhook receiver").waitFor();
  await page.getByRole("button", { name: "New receiver" }).focus();
  await page.keyboard.press("Enter");
  await page.locator('[name="name"]:focus').waitFor();
  await page.keyboard.type("shop");
  await page.getByLabel("Vendor").focus();
  await page.keyboard.type("Stripe");
  await page.getByText("The signing secret of the endpoint, which begins with whsec_.").waitFor();
  await page.getByLabel("Secret").focus();
  await page.keyboard.type(SECRET);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "shop" }).waitFor();
  await getSection(page, "At Stripe").getByText("/hooks/").waitFor();
  const forward = `npx underpass webhooks shop --forward 3000/hook --server ${pages.origin}`;
  await page.getByText(forward, { exact: true }).waitFor();
  await getSection(page, "How signatures are checked").getByText("t=<seconds>,v1=<hex>").waitFor();

  await page.getByRole("tab", { name: "Set up" }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await page.getByText("Waiting for the first delivery").waitFor();
  const [receiver] = (await owner.get<Receiver[]>("/webhook-receivers")).body;
  const body = '{"id":"evt_1","amount":12345678901234567890}';
  expect((await deliver(pages.api.server, receiver!, { body })).status).toBe(200);
  await page.getByRole("listitem").filter({ hasText: "evt_1" }).waitFor();
  await page.keyboard.press("j");
  await getSection(page, "Body").getByText("12345678901234567890").waitFor();
  expect(new URL(page.url()).search).toContain("delivery=");
});

test("deliveries appear as they arrive, with headers and body as text alone", async () => {
  const owner = await pages.api.owner();
  const receiver = await createReceiver(owner, "generic_hmac_sha256", "live feed");
  await deliver(pages.api.server, receiver, { id: "first", body: "plain <b>text</b>\u202e" });
  const page = await openReceiver(owner, receiver);
  await page.getByText("live", { exact: true }).waitFor();
  await deliver(pages.api.server, receiver, {
    id: "<script>alert(1)</script>",
    body: Buffer.from([0, 255, 16]),
    headers: { "x-note": "<i>note</i>" },
  });
  const items = page.getByRole("list", { name: "Deliveries" }).getByRole("listitem");
  await items.filter({ hasText: "<script>" }).waitFor();
  expect(await items.allTextContents()).toEqual([
    expect.stringContaining("<script>"),
    expect.stringContaining("first"),
  ]);
  await items.filter({ hasText: "<script>" }).getByRole("link").click();
  await getSection(page, "Headers").getByText("<i>note</i>").waitFor();
  await getSection(page, "Body").getByText("00 ff 10").waitFor();
  await page.keyboard.press("j");
  await items.locator("[aria-current]").filter({ hasText: "first" }).waitFor();
  await getSection(page, "Body").getByText("plain <b>text</b>").waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: /^Download the body/ }).click(),
  ]);
  expect(await readFile(await download.path(), "utf8")).toBe("plain <b>text</b>\u202e");
  await page.reload();
  await getSection(page, "Body").getByText("plain <b>text</b>").waitFor();

  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole("list", { name: "Deliveries" }).waitFor({ state: "hidden" });
  const back = page.getByRole("link", { name: "Back to the deliveries" });
  const focused = page.locator(":focus");
  await back.click();
  await items.filter({ hasText: "first" }).getByRole("link").and(focused).waitFor();
  await page.keyboard.press("Enter");
  await back.and(focused).waitFor();
});

test("a hidden page does not wait for deliveries, and has all of them when it is visible again", async () => {
  const owner = await pages.api.owner();
  const receiver = await createReceiver(owner, "generic_hmac_sha256", "background tab");
  const page = await openReceiver(owner, receiver);
  await page.getByText("Waiting for the first delivery").waitFor();
  await setVisibility(page, "hidden");
  await deliver(pages.api.server, receiver, { id: "one" });
  const items = page.getByRole("list", { name: "Deliveries" }).getByRole("listitem");
  await items.filter({ hasText: "one" }).waitFor();
  let polls = 0;
  page.on("request", (request) => (polls += request.url().includes("/events?") ? 1 : 0));
  await deliver(pages.api.server, receiver, { id: "two" });
  await page.evaluate("fetch('/setup')");
  expect(polls).toBe(0);
  await setVisibility(page, "visible");
  await items.filter({ hasText: "two" }).waitFor();
});

test("after an error the page connects again; after many stored deliveries it asks before it goes on", async () => {
  const owner = await pages.api.owner();
  const receiver = await createReceiver(owner, "generic_hmac_sha256", "backlog");
  const page = await pages.openAs(owner.email, "/receivers");
  let isRefused = true;
  await page.route("**/events?**", async (route) => {
    const query = new URL(route.request().url()).searchParams;
    // A long poll without a delivery.
    if (query.get("wait") !== "0") return;
    const json = isRefused
      ? { error: "rate_limited", message: "Too many requests.", retry_after_seconds: 1 }
      : buildPage(Number(query.get("after")));
    await route.fulfill({ status: isRefused ? 429 : 200, json });
  });
  await page.goto(`${pages.origin}/receivers/${receiver.id}?since=all`);
  await page.getByText("reconnecting").waitFor();
  isRefused = false;
  await page.getByText("more are stored").waitFor();
  const items = page.getByRole("list", { name: "Deliveries" }).getByRole("listitem");
  expect(await items.count()).toBe(10);
  await clickButton(page, "Load later deliveries");
  await page.getByText("live", { exact: true }).waitFor();
  expect(await items.count()).toBe(STORED_DELIVERIES);
});

/** A page with one delivery, as long as there are more. */
function buildPage(after: number): DeliveryPage {
  const cursor = String(after + 1);
  const delivery = {
    id: `stored-${cursor}`,
    receivedAt: new Date().toISOString(),
    headers: {},
    body: "",
    contentType: null,
    cursor,
  };
  return after < STORED_DELIVERIES
    ? { events: [delivery], cursor }
    : { events: [], cursor: String(after) };
}

test("a delivery is listed with its event, id, time and state, and its id is copied from the details", async () => {
  const owner = await pages.api.owner();
  const receiver = await createReceiver(owner, "code_host", "repository");
  await deliver(pages.api.server, receiver, {
    id: "72d3162e-cc78",
    body: '{"action":"opened"}',
    headers: { "x-github-event": "pull_request" },
  });
  await deliver(pages.api.server, receiver, { id: "without-event", body: "plain" });
  const page = await openReceiver(owner, receiver);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const [plain, event] = await page
    .getByRole("list", { name: "Deliveries" })
    .getByRole("listitem")
    .allTextContents();
  expect(plain).toMatch(/^without-event.*5 B ?pending$/);
  expect(event).toMatch(/^pull_request\.opened ?72d3162e-cc78.*19 B ?pending$/);

  await page.getByRole("link", { name: /^pull_request/ }).click();
  const details = getSection(page, "Delivery");
  await details.getByText("pull_request.opened").waitFor();
  await details.getByText("verified").waitFor();
  await details.getByText("pending").waitFor();
  await details.getByRole("button", { name: "Copy the id" }).click();
  await details.getByRole("button", { name: "Copied" }).waitFor();
  expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe("72d3162e-cc78");
});

test("deliveries are acknowledged up to one of them", async () => {
  const owner = await pages.api.owner();
  const receiver = await createReceiver(owner, "generic_hmac_sha256", "inbox");
  for (const id of ["one", "two", "three"]) await deliver(pages.api.server, receiver, { id });
  const page = await openReceiver(owner, receiver);
  await page.getByRole("link", { name: /^two/ }).click();
  await clickButton(page, "Acknowledge up to here");
  await answerDialog(page, "Acknowledge");
  const list = page.getByRole("list", { name: "Deliveries" });
  await list.getByText("acknowledged").nth(1).waitFor();
  expect(await list.getByText("acknowledged").count()).toBe(2);
  expect(await list.getByRole("listitem").first().textContent()).not.toContain("acknowledged");
});

test("test deliveries of the browser and of the shown script are accepted, for each vendor", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/receivers");
  const sent: string[] = [];
  page.on("request", (request) =>
    sent.push(`${JSON.stringify(request.headers())} ${request.postData() ?? ""}`),
  );
  for (const validator of VALIDATORS) {
    const receiver = await createReceiver(owner, validator, `test of ${validator}`);
    await page.goto(`${pages.origin}/receivers/${receiver.id}?tab=test`);
    await page.getByLabel("Secret of the receiver").fill("another secret");
    await clickButton(page, "Sign and send");
    await page.getByText("This is not the secret of the receiver.").waitFor();
    await page.getByLabel("Secret of the receiver").fill(SECRET);
    await clickButton(page, "Sign and send");
    await page.getByText("The delivery was accepted.").waitFor();
    const script = await page
      .getByRole("group", { name: "Script that sends a signed delivery" })
      .textContent();
    const ready = (script ?? "").replace("the secret of this receiver", SECRET);
    await promisify(execFile)("sh", ["-c", ready], { env: { PATH: process.env.PATH } });
    const stored = await readDeliveries(owner, receiver);
    const bodies = stored.map(({ body }) => Buffer.from(body, "base64").toString());
    const sample = '{"type":"test","message":"Hello from Underpass"}';
    expect([validator, bodies]).toEqual([validator, [sample, sample]]);
  }
  expect(sent.filter((text) => text.includes("x-hub-signature-256"))).not.toEqual([]);
  expect(sent.join("\n")).not.toContain(SECRET);
});

test("the secret is rotated with an overlap, and the receiver deleted by its name", async () => {
  const owner = await pages.api.owner();
  const receiver = await createReceiver(owner, "generic_hmac_sha256", "ledger");
  const page = await openReceiver(owner, receiver);
  await clickButton(page, "Rotate the secret");
  await clickButton(page, "Generate a secret");
  const secret = await page.getByLabel("New secret").inputValue();
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  await page.getByLabel("Accept the previous secret").selectOption("for 1 hour");
  await answerDialog(page, "Rotate");
  await getSection(page, "Summary").getByText("Previous secret accepted until").waitFor();
  for (const each of [secret, SECRET]) {
    expect((await deliver(pages.api.server, receiver, { secret: each })).status).toBe(200);
  }
  await clickButton(page, "Delete");
  await page.getByLabel("Type ledger to confirm").fill("ledger");
  await getDialog(page).getByRole("button", { name: "Delete the receiver" }).click();
  await page.getByText("Create your first webhook receiver").waitFor();
});

test("viewers read deliveries, and see no buttons that the API would refuse", async () => {
  const owner = await pages.api.owner();
  const viewer = await pages.api.colleague(owner, "viewer");
  const receiver = await createReceiver(owner, "generic_hmac_sha256", "audit copy");
  await deliver(pages.api.server, receiver, { id: "seen" });
  const page = await openReceiver(viewer, receiver);
  await page.getByRole("link", { name: /^seen/ }).click();
  await getSection(page, "Headers").getByText("x-delivery-id").waitFor();
  for (const name of ["Rotate the secret", "Delete", "Acknowledge up to here"]) {
    expect([name, await page.getByRole("button", { name }).count()]).toEqual([name, 0]);
  }
});

test("a list of 100 receivers asks only for the state of those on the screen", async () => {
  const owner = await pages.api.owner();
  await createReceiver(owner);
  await pages.api.sql(
    `insert into webhook_receivers (org_id, name, validator, secret)
     select org_id, 'receiver-with-a-long-name-' || n, validator, secret
     from webhook_receivers, generate_series(1, 99) n where org_id = $1`,
    [owner.orgId],
  );
  const page = await pages.openAs(owner.email);
  const asked = new Set<string>();
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (/^\/webhook-receivers\/./.test(pathname)) asked.add(pathname);
  });
  await page.getByRole("link", { name: "Webhook receivers" }).click();
  const rows = page.getByRole("main").getByRole("row");
  await rows.nth(1).getByText("never").waitFor();
  const name = await rows.nth(1).getByRole("cell").first().boundingBox();
  expect(name!.width).toBeGreaterThanOrEqual(NAME_COLUMN_MIN_PX);
  expect(await rows.count()).toBe(101);
  await rows.last().scrollIntoViewIfNeeded();
  await rows.last().getByText("never").waitFor();
  expect(asked.size).toBeLessThan(60);
});

test("axe finds nothing on the tabs and in the dialog, which fit a narrow screen", async () => {
  const owner = await pages.api.owner();
  const receiver = await createReceiver(owner, "chat_app", "accessible events");
  const body = JSON.stringify({ event_id: `Ev${"0".repeat(80)}`, text: "word ".repeat(200) });
  await deliver(pages.api.server, receiver, { body, headers: { "x-long": "y".repeat(500) } });
  const page = await pages.openAs(owner.email, "/receivers");
  const check = async () => expect(await findPageProblems(page)).toEqual([]);
  await clickButton(page, "New receiver");
  await page.getByLabel("Name").waitFor();
  await check();
  for (const tab of ["setup", "test"]) {
    await page.goto(`${pages.origin}/receivers/${receiver.id}?tab=${tab}`);
    await waitForContent(page);
    await check();
  }
  await page.getByRole("tab", { name: "Deliveries" }).click();
  await page.getByRole("link", { name: /^Ev0/ }).click();
  await getSection(page, "Headers").waitFor();
  await check();
});

test("a link with an unknown tab shows the first one", async () => {
  const owner = await pages.api.owner();
  const receiver = await createReceiver(owner, "code_host", "linked");
  const page = await openReceiver(owner, receiver, "?tab=set-up");
  await page.getByRole("tab", { name: "Deliveries", selected: true }).waitFor();
});
