/** The audit log: filters, details, exports, and the events of one's own account. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { AuditEvent } from "../../../../protocol/schemas/organizations/audit.ts";
import { mintToken, startApi, type Person } from "../../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import {
  clickButton,
  getSection,
  signIn,
  usePages,
  waitForContent,
} from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());
const HOSTILE_NAME = '=HYPERLINK("https://attacker.example","<b>x</b>")';

const getRows = (page: Page) => getSection(page, "Events").getByRole("listitem");

async function exportAs(page: Page, format: string): Promise<string> {
  await clickButton(page, "Export");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: format }).click(),
  ]);
  await page
    .getByText(/events were exported/)
    .first()
    .waitFor();
  return readFile(await download.path(), "utf8");
}

/** An organization with a token that has been revoked, and a tunnel that a colleague created. */
async function createEvents(): Promise<{ owner: Person; member: Person; subdomain: string }> {
  const owner = await pages.api.owner();
  const member = await pages.api.colleague(owner, "member");
  const { nonce } = await mintToken(owner, { name: HOSTILE_NAME });
  await owner.delete(`/tokens/${nonce}`);
  const { body } = await member.post<{ subdomain: string }>("/tunnels", { localPort: 3000 });
  return { owner, member, subdomain: body.subdomain };
}

test("each event is a sentence, and its details are shown on demand, by keyboard too, with the second and the time zone", async () => {
  const { owner, member, subdomain } = await createEvents();
  const page = await pages.openAs(owner.email, "/audit");
  await getRows(page)
    .filter({ hasText: `${owner.email} revoked the token =HYPERLINK` })
    .waitFor();
  const row = getRows(page).filter({ hasText: `${member.email} created the tunnel ${subdomain}` });
  await row.locator("summary").focus();
  await page.keyboard.press("Enter");
  await row.getByText(/:\d\d:\d\d [AP]M (?:UTC|GMT|[A-Z]{2,4})/).waitFor();
  await row.getByRole("link", { name: "tunnel_created" }).click();
  await page.waitForURL(`${pages.origin}/audit?action=tunnel_created`);
  await expect.poll(() => getRows(page).count(), WAIT_OPTIONS).toBe(1);
});

test("a member who has left keeps the name in the log; one whose name was not recorded is a former member", async () => {
  const { owner, member } = await createEvents();
  expect(await owner.delete(`/orgs/${owner.orgId}/members/${member.userId}`)).toMatchObject({
    status: 200,
  });
  await pages.api.sql(
    `insert into audit_events (org_id, user_id, action, resource_type, resource_id, ip, metadata)
     values ($1, $2, 'member_removed', 'user', 'aaaabbbb-0000-4000-8000-000000000000', '::1', '{}')`,
    [owner.orgId, owner.userId],
  );
  const page = await pages.openAs(owner.email, "/audit?action=member_removed");
  const removed = `${owner.email} removed the member`;
  await getRows(page)
    .filter({ hasText: `${removed} ${member.email}` })
    .waitFor();
  await getRows(page)
    .filter({ hasText: `${removed} former member aaaabbbb` })
    .waitFor();
});

test("a state of a subscription is written in words, and what an agent did is not said of its owner alone", async () => {
  const owner = await pages.api.owner();
  await pages.api.sql(
    `insert into audit_events (org_id, action, resource_type, resource_id, metadata, user_id)
     values ($1, 'subscription_changed', 'subscription', 'sub_1', '{"plan": "pro", "status": "past_due"}', null),
       ($1, 'tunnel_stopped', 'tunnel', 'shop', '{"by": "agent", "tokenNonce": "ab"}', $2)`,
    [owner.orgId, owner.userId],
  );
  const page = await pages.openAs(owner.email, "/audit");
  await getRows(page)
    .filter({ hasText: "The service changed the subscription: pro, past due" })
    .waitFor();
  await getRows(page)
    .filter({ hasText: `${owner.email} stopped the tunnel shop, through an agent` })
    .waitFor();
});

test("filters are in the URL, and can be cleared", async () => {
  const { owner, member } = await createEvents();
  const page = await pages.openAs(owner.email, `/audit?actor=${encodeURIComponent(member.email)}`);
  await getRows(page).filter({ hasText: "created the tunnel" }).waitFor();
  expect(await getRows(page).filter({ hasText: owner.email }).count()).toBe(0);
  expect(await page.getByLabel("Person").inputValue()).toBe(member.email);

  await clickButton(page, "Clear");
  await page.waitForURL(`${pages.origin}/audit`);
  await page.keyboard.type("hyperlink");
  await page.waitForURL(`${pages.origin}/audit?text=hyperlink`);
  await expect.poll(() => getRows(page).count(), WAIT_OPTIONS).toBe(2);
  await page.getByLabel("Action").selectOption("Token revoked");
  await expect.poll(() => getRows(page).count(), WAIT_OPTIONS).toBe(1);
  await page.getByLabel("Time").selectOption("Last hour");
  await page.getByLabel("IP address").fill("127.0.0.2");
  await page.getByText("No event matches.").waitFor();
  const url = new URL(page.url());
  expect(Object.fromEntries(url.searchParams)).toEqual({
    text: "hyperlink",
    action: "token_revoked",
    range: "1h",
    ip: "127.0.0.2",
  });
  await page.goto(`${pages.origin}/audit?from=2020-01-01T00:00&to=2020-02-01T00:00`);
  await page.getByText("No event matches.").waitFor();
  expect(await page.getByLabel("Until").inputValue()).toBe("2020-02-01T00:00");
});

test("all events of the filter are exported, without formulas for spreadsheets", async () => {
  const { owner } = await createEvents();
  await pages.api.sql(
    `insert into audit_events (org_id, action, resource_type, resource_id)
     select $1, 'tunnel_expired', 'tunnel', n::text from generate_series(1, 1200) n`,
    [owner.orgId],
  );
  const page = await pages.openAs(owner.email, "/audit?text=token");
  await getRows(page).first().waitFor();
  const csv = await exportAs(page, "As CSV");
  const [header, ...rows] = csv.trimEnd().split("\r\n");
  expect(header).toContain('"timestamp","action","description"');
  expect(rows).toHaveLength(2);
  expect(rows[0]).toContain(`"${owner.email} revoked the token =HYPERLINK(""https`);
  expect(csv).not.toMatch(/(^|,)"[=+@-]/m);

  await page.goto(`${pages.origin}/audit`);
  await waitForContent(page);
  const events = JSON.parse(await exportAs(page, "As JSON")) as AuditEvent[];
  const { body: newest } = await owner.get<AuditEvent[]>("/events?limit=1000");
  expect(events.slice(0, 1000)).toEqual(newest);
  expect(events.length).toBeGreaterThan(1200);
});

test("in a browser with another language, times and numbers are in English too", async () => {
  const { email } = await pages.api.owner();
  const page = await pages.open("/me", "ar-EG");
  await signIn(page, email);
  await getSection(page, "Your recent events").getByText("You signed in").first().waitFor();
  const text = await page.getByRole("main").innerText();
  expect(text).toMatch(/\b20\d\d\b/);
  expect(text).not.toMatch(/[\p{Script=Arabic}٠-٩]/u);
});

test("the account has its own events, and a readable name for every client", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/me");
  const events = getSection(page, "Your recent events");
  const signIn = events
    .getByRole("listitem")
    .filter({ hasText: "You signed in with Chrome on Linux" });
  await signIn.getByText("new device", { exact: true }).waitFor();
  const sessions = getSection(page, "Sessions");
  await sessions.getByText("Chrome on Linux").first().waitFor();
  await pages.api.sql(
    "update sessions set device = $2 where user_id = $1 and device like 'node%'",
    [owner.userId, "<b>bot</b>\u202e/1.0"],
  );
  await page.reload();
  await sessions.getByText("<b>bot</b>").waitFor();
});
