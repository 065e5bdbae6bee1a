/** An owner buys, changes and cancels plans in a real browser, with `BILLING_MODE=mock`. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { CheckoutSession } from "../../../../protocol/schemas/billing.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { findPageProblems } from "../../../harness/browser/page-checks.ts";
import { answerDialog, getSection, clickButton, usePages } from "../../../harness/browser/pages.ts";
import { startApi } from "../../../harness/server/api.ts";

const pages = usePages(() => startApi({ kind: "mockBilling" }));

test("a plan is bought, changed, overdue, paid and canceled on the pages", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/billing");
  const billing = getSection(page, "Plan and billing");
  await billing.getByText("$10 a month, or $100 a year").waitFor();

  await clickButton(page, "Pay monthly for Pro");
  await page.getByRole("heading", { name: "You now have the pro plan" }).waitFor();
  const checkoutUrl = page.url();
  await page.getByRole("link", { name: "Back to your account" }).click();
  await billing.getByText("billed monthly").waitFor();
  expect(await billing.getByRole("button", { name: "Pay monthly for Pro" }).count()).toBe(0);

  await clickButton(page, "Pay yearly for Team");
  await page.getByRole("heading", { name: "You now have the team plan" }).waitFor();
  await page.goto(checkoutUrl);
  await page.getByText("which includes more than pro. Cancel it first.").waitFor();
  await page.goto(`${pages.origin}/billing`);
  await billing.getByText("billed yearly").waitFor();
  expect(await billing.getByRole("button", { name: /^Pay .* for Pro$/ }).count()).toBe(0);

  await clickButton(page, "Invoices and payment");
  for (const [action, outcome] of [
    ["Cancel at the end of the period", "The subscription ends with the current period."],
    ["Don't cancel", "Cancel at the end of the period"],
    ["Let a payment fail", "A payment is overdue."],
    ["Pay what is overdue", "Let a payment fail"],
    ["Let a payment fail", "A payment is overdue."],
  ] as const) {
    await clickButton(page, action);
    await page.getByText(outcome).waitFor();
  }
  await page.getByRole("link", { name: "Back to your account" }).click();
  await billing.getByRole("alert").filter({ hasText: "A payment did not go through" }).waitFor();

  await clickButton(page, "Cancel the plan");
  await answerDialog(page, "Cancel the plan");
  await billing.getByText("Free", { exact: true }).waitFor();
  await billing.getByText("canceled").waitFor();
  expect(await billing.getByRole("button", { name: "Cancel the plan" }).count()).toBe(0);
});

test("plans that the organization's own includes are not for sale, also after a change elsewhere", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/billing");
  const billing = getSection(page, "Plan and billing");
  const listOffers = () => billing.getByRole("button", { name: /^Pay / }).allTextContents();
  for (const [plan, included, offers] of [
    ["pro", 1, 2],
    ["enterprise", 2, 0],
  ] as const) {
    await pages.api.sql("update organizations set plan = $2 where id = $1", [owner.orgId, plan]);
    await billing
      .getByText("Your plan includes it.")
      .nth(included - 1)
      .waitFor();
    expect(await listOffers()).toHaveLength(offers);
  }
});

test("the plans are compared by the limits of the server, and the organization's own is marked", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/billing");
  const table = getSection(page, "What the plans include").getByRole("table");
  await table.getByRole("columnheader", { name: "Free Your plan" }).waitFor();
  const rows = await table.getByRole("row").allInnerTexts();
  expect(rows.map((row) => row.split("\t").map((cell) => cell.trim()))).toEqual([
    ["Limit", "Free\nYour plan", "Pro", "Team", "Enterprise"],
    ["Lifetime of a tunnel", "1 hour", "1 day", "7 days", "No expiry"],
    ["Reserved names", "0", "5", "Unlimited", "Unlimited"],
    ["Requests and deliveries are stored for", "7 days", "30 days", "90 days", "365 days"],
    ["Passwords for tunnels", "–", "Yes", "Yes", "Yes"],
    ["Sign-in of visitors", "–", "Yes", "Yes", "Yes"],
    // A self-hosted server includes them in every plan.
    ["Master keys", "Yes", "Yes", "Yes", "Yes"],
  ]);
  expect(await findPageProblems(page)).toEqual([]);
});

test("after the checkout the page shows the plan as soon as the payment is confirmed", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email);
  await page.goto("about:blank");
  await page.goto(`${pages.origin}/billing#paid`);
  const billing = getSection(page, "Plan and billing");
  await billing.getByText("The payment is being confirmed.").waitFor();
  const checkout = { plan: "pro" };
  const { body } = await owner.post<CheckoutSession>("/billing/checkout-session", checkout);
  const { pathname, search } = new URL(body.checkout_url);
  expect(await owner.get(pathname + search)).toMatchObject({ status: 200 });
  await billing.getByText("billed monthly").waitFor();
  await billing.getByText("The payment is being confirmed.").waitFor({ state: "detached" });
  expect(new URL(page.url()).hash).toBe("");
});

test("resources beyond the plan are shown, to owners only", async () => {
  const owner = await pages.api.owner();
  await pages.api.sql("update organizations set plan = 'pro' where id = $1", [owner.orgId]);
  await owner.post("/reserved-subdomains", { subdomain: `reserved-${crypto.randomUUID()}` });
  await pages.api.sql("update organizations set plan = 'free' where id = $1", [owner.orgId]);
  const page = await pages.openAs(owner.email, "/billing");
  await getSection(page, "Plan and billing").getByText("Reserved subdomains: 1").waitFor();
  expect(await page.getByRole("link", { name: "Billing" }).count()).toBe(1);

  const admin = await pages.api.colleague(owner, "admin");
  const adminPage = await pages.openAs(admin.email);
  expect(await adminPage.getByRole("link", { name: "Members" }).count()).toBe(1);
  expect(await adminPage.getByRole("link", { name: "Billing" }).count()).toBe(0);
  await adminPage.goto(`${pages.origin}/billing`);
  await adminPage.getByRole("heading", { name: "Only owners see the billing" }).waitFor();
  await adminPage.getByText("You are an admin of").waitFor();
  expect(await adminPage.getByRole("alert").count()).toBe(0);
});

test("a form whose plan is too small leads owners to the plans, and tells others whom to ask", async () => {
  const owner = await pages.api.owner();
  // The trial includes passwords.
  await pages.api.sql("update organizations set trial_ends_at = null where id = $1", [owner.orgId]);
  const member = await pages.api.colleague(owner, "member");
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  const setPassword = async (page: Page) => {
    await clickButton(page, "Set up a password");
    await page.getByLabel("Username").fill("ann");
    await page.getByRole("textbox", { name: "Password", exact: true }).fill("a long password");
    await clickButton(page, "Save");
  };
  const page = await pages.openAs(owner.email, "/names");
  await clickButton(page, "Reserve a name");
  await page.getByLabel("Name", { exact: true }).fill(`paid-${crypto.randomUUID()}`);
  await clickButton(page, "Reserve");
  await page.getByRole("alert").getByRole("link", { name: "See the plans" }).waitFor();

  await page.goto(`${pages.origin}/tunnels/${tunnel.id}?tab=access`);
  await setPassword(page);
  await page.getByRole("alert").getByRole("link", { name: "See the plans" }).waitFor();
  await clickButton(page, "Cancel");

  await clickButton(page, "Set up the sign-in");
  await page.getByLabel("Allowed email domains").fill("example.com");
  await clickButton(page, "Save");
  await page.getByRole("alert").getByRole("link", { name: "See the plans" }).click();
  await getSection(page, "Plan and billing").waitFor();

  const memberPage = await pages.openAs(member.email, `/tunnels/${tunnel.id}?tab=access`);
  await setPassword(memberPage);
  await memberPage
    .getByRole("alert")
    .filter({ hasText: "Your plan does not include passwords for tunnels. An owner" })
    .waitFor();
});
