/** The overview, in a real browser. */
import { expect, test } from "vitest";
import { startApi } from "../../../harness/server/api.ts";
import { clickButton, getSection, usePages } from "../../../harness/browser/pages.ts";
import { serveTunnel, storeTraffic } from "../../../harness/browser/traffic.ts";

const pages = usePages(() => startApi());

test("a new organization sees its first tunnel and its requests without a reload, step by step", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email);
  await page.getByRole("heading", { name: "Open your first tunnel" }).waitFor();
  const commands = await page.locator(".empty .command code").allTextContents();
  expect(commands).toEqual([
    `npx underpass login --server ${pages.origin}`,
    "npx underpass http 3000",
    // In the closed details for other directories.
    `npm install --global ${pages.origin}/underpass.tgz`,
  ]);
  const steps = getSection(page, "First steps");
  await steps.getByText("0 of 4 done").waitFor();

  await using tunnel = await serveTunnel(pages.api, owner, "first-ever");
  const connected = getSection(page, "Connected now");
  await connected.getByRole("link", { name: "first-ever", exact: true }).waitFor();
  await steps.getByText("1 of 4 done").waitFor();
  await steps.getByText(/^curl http:\/\/first-ever\./).waitFor();
  await connected.getByText(/agent at .*, connected/).waitFor();

  await tunnel.visit("/status/500");
  await steps.getByText("2 of 4 done").waitFor();
  await steps.getByText(/--subdomain first-ever --basic-auth/).waitFor();
  await owner.put(`/tunnels/${tunnel.id}/auth`, { username: "ann", password: "long-enough" });
  await steps.getByText("3 of 4 done").waitFor();
  await pages.api.colleague(owner, "member");
  await page.reload();
  await connected.getByRole("link", { name: "first-ever", exact: true }).waitFor();
  await steps.waitFor({ state: "detached" });
});

test("the first steps of an organization whose tunnels are all of TCP are possible for these", async () => {
  const owner = await pages.api.owner();
  const { body } = await owner.post<{ id: string }>("/tunnels", {
    localPort: 5432,
    subdomain: "db",
  });
  await pages.api.sql("update tunnels set protocol = 'tcp', last_seen_at = now() where id = $1", [
    body.id,
  ]);
  const steps = getSection(await pages.openAs(owner.email), "First steps");
  await steps.getByText("Open an HTTP tunnel, and watch its requests").waitFor();
  await steps.getByText(/^npx underpass http 3000/).waitFor();
  await pages.api.sql("update tunnels set total_requests = 1 where id = $1", [body.id]);
  await steps.page().reload();
  await steps.getByText(/^npx underpass tcp 5432 --subdomain db.* --allow CIDR/).waitFor();
  await owner.post("/tunnels", { localPort: 3000, subdomain: "first-of-http" });
  await steps.page().reload();
  await steps.getByText(/--subdomain first-of-http --basic-auth/).waitFor();
});

test("a viewer, who can't open tunnels, is not told to run commands", async () => {
  const viewer = await pages.api.colleague(await pages.api.owner(), "viewer");
  const page = await pages.openAs(viewer.email);
  const empty = page.locator(".empty");
  for (const name of [
    "/",
    "tunnels",
    "requests",
    "metrics",
    "tokens",
    "networks",
    "receivers",
    "domains",
    "names",
  ]) {
    await page.goto(new URL(name, pages.origin).href);
    await empty.getByRole("heading", { name: /^No / }).waitFor();
    expect(await empty.locator(".command").count()).toBe(0);
  }
});

test("the newest failed requests lead to their details, and the numbers to their pages", async () => {
  const owner = await pages.api.owner();
  await using tunnel = await serveTunnel(pages.api, owner, "failing-shop");
  await tunnel.visit("/fine");
  await tunnel.visit("/status/503?at=%E2%80%AEdetrevni");
  await storeTraffic(pages.api, owner, { tunnelId: tunnel.id, minutesAgo: 90, requests: 1_234 });
  const page = await pages.openAs(owner.email);
  await page.getByText("1,23", { exact: false }).first().waitFor();
  await page.getByRole("link", { name: "50% of captured requests" }).waitFor();
  await page.getByRole("img", { name: /1,23\d requests in the last 24 hours/ }).waitFor();
  const failures = getSection(page, "Latest failed requests");
  expect(await failures.getByRole("listitem").count()).toBe(1);
  await failures.getByText("503", { exact: true }).waitFor();
  await failures.getByRole("link", { name: "GET /status/503" }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/requests/"));
  await page.goBack();
  await page.getByRole("link", { name: "All failed requests" }).click();
  await page.waitForURL((url) => url.searchParams.get("filter") === "status:5xx");
});

test("the first steps are hidden and shown again by keyboard alone", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email);
  const hide = getSection(page, "First steps").getByRole("button", { name: "Hide" });
  await hide.focus();
  await page.keyboard.press("Enter");
  await getSection(page, "First steps").waitFor({ state: "detached" });
  const undo = page.getByRole("button", { name: "Show again" });
  await undo.focus();
  await page.keyboard.press("Enter");
  await getSection(page, "First steps").waitFor();
  await clickButton(page, "Hide");
  await page.reload();
  await page.getByRole("heading", { name: "Open your first tunnel" }).waitFor();
  expect(await getSection(page, "First steps").count()).toBe(0);
});

test("a notice says what needs an action: no second factor, and a budget that is almost used up", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email);
  const twoFactor = page.getByRole("note").filter({ hasText: "protected by a password only" });
  await twoFactor.getByRole("link", { name: "Set up two-factor authentication" }).waitFor();
  // The server sells no plans.
  expect(await page.getByRole("link", { name: "Billing" }).count()).toBe(0);
  await twoFactor.getByRole("button", { name: "Hide this notice" }).click();
  await twoFactor.waitFor({ state: "detached" });
  const tunnel = await owner.post<{ id: string }>("/tunnels", { localPort: 1 });
  const token = await owner.post<{ id: string }>("/tokens", { name: "ci" });
  await pages.api.sql(
    "insert into token_usage select $1, to_char(now() at time zone 'utc', 'YYYY-MM'), $2, 9e9, 1",
    [token.body.id, tunnel.body.id],
  );
  await owner.put(`/orgs/${owner.orgId}/budget`, { monthlyBudgetUsdCents: 100 });
  await page.reload();
  await page.getByText("90% of this month's budget of $1.00 is used.").waitFor();
  expect(await twoFactor.count()).toBe(0);
  await owner.put(`/orgs/${owner.orgId}/budget`, { monthlyBudgetUsdCents: 50 });
  await page.reload();
  await page.getByText("This month's budget of $0.50 is used up").waitFor();
  const meter = page.getByRole("meter", { name: "Spent of the budget" });
  expect(await meter.getAttribute("aria-valuenow")).toBe("100");
});

test("what a notice needs can't be loaded: the overview shows the rest, and asks for it a few times only", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/me");
  let requests = 0;
  await page.route(/\/usage\?/, (route) => {
    requests += 1;
    return route.fulfill({ status: 403, json: { error: "forbidden", message: "Not now." } });
  });
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("heading", { name: "Open your first tunnel" }).waitFor();
  await getSection(page, "First steps").getByText("0 of 4 done").waitFor();
  expect(requests).toBeLessThanOrEqual(3);
});

test("a viewer sees the state of the organization, and no steps that the API would refuse", async () => {
  const owner = await pages.api.owner();
  const viewer = await pages.api.colleague(owner, "viewer");
  const page = await pages.openAs(viewer.email);
  await page.getByRole("heading", { name: "No tunnels yet" }).waitFor();
  expect(await getSection(page, "First steps").count()).toBe(0);
  expect(await page.getByRole("link", { name: "Set up two-factor authentication" }).count()).toBe(
    0,
  );
  await owner.post("/tunnels", { localPort: 1 });
  await getSection(page, "Connected now").getByText("No agent is connected.").waitFor();
  expect(await getSection(page, "Plan").getByRole("link").count()).toBe(0);
});

test("charts are loaded only by the page that shows them", async () => {
  const owner = await pages.api.owner();
  await using tunnel = await serveTunnel(pages.api, owner, "checked-shop");
  await tunnel.visit("/status/500");
  const page = await pages.openAs(owner.email);
  await getSection(page, "Latest failed requests").getByText("500", { exact: true }).waitFor();
  const scripts = await page.evaluate<string[]>(
    "performance.getEntriesByType('resource').map(({ name }) => name)",
  );
  expect(scripts.filter((name) => /\/chart-/.test(name))).toEqual([]);
});

test("all members of an organization with more than one page of them are counted", async () => {
  const owner = await pages.api.owner();
  await pages.api.sql(
    `with people as (
       insert into users (email, password_hash)
       select 'member-' || n || '@' || $1::uuid || '.example', '' from generate_series(1, 1000) n
       returning id
     )
     insert into memberships (user_id, org_id, role) select id, $1::uuid, 'viewer' from people`,
    [owner.orgId],
  );
  await owner.post("/tunnels", { localPort: 1 });
  const plan = getSection(await pages.openAs(owner.email), "Plan");
  await plan.getByText("1,001").waitFor();
});
