/** The pages of the account and of the organization, in a real browser. */
import { expect, test } from "vitest";
import type { Session } from "../../../../protocol/schemas/accounts/accounts.ts";
import type { Organization } from "../../../../protocol/schemas/organizations/organizations.ts";
import { ACCESS_TOKEN_SECONDS } from "../../../../protocol/limits.ts";
import { newEmail, startApi } from "../../../harness/server/api.ts";
import {
  findAccessibilityProblems,
  findPageProblems,
  findUnnamed,
} from "../../../harness/browser/page-checks.ts";
import {
  answerDialog,
  clickButton,
  getDialog,
  getSection,
  signIn,
  usePages,
  waitForContent,
} from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

test("an invitation is sent, opened and accepted", async () => {
  const owner = await pages.api.owner();
  const guest = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/members");
  await clickButton(page, "Invite a person");
  await page.getByLabel("Email address").fill(guest.email);
  await page.getByLabel("Role").selectOption("admin");
  await answerDialog(page, "Send the invitation");
  await getSection(page, "Invitations").getByText(guest.email).waitFor();

  const link = await pages.findMailedLink("/invitation", guest.email);
  const wrong = await pages.openAs((await pages.api.owner()).email, link);
  expect(new URL(wrong.url()).hash).toBe("");
  await wrong.getByRole("alert").filter({ hasText: "for another email address" }).waitFor();
  expect(await wrong.getByRole("button").allTextContents()).toEqual(["Use a different account"]);

  const guestPage = await pages.openAs(guest.email, link);
  const { body: organization } = await owner.get<Organization>(`/orgs/${owner.orgId}`);
  const offer = `${owner.email} invites you to join ${organization.name} as an admin.`;
  await guestPage.getByText(offer).waitFor();
  expect(await findAccessibilityProblems(guestPage)).toEqual([]);
  await clickButton(guestPage, "Accept the invitation");
  await guestPage.getByText(/You joined .* as an admin\./).waitFor();
  await clickButton(guestPage, "Open the organization");
  await guestPage.getByRole("link", { name: "Members" }).click();
  await getSection(guestPage, "Members").getByText(owner.email).waitFor();
  await getSection(guestPage, "Members").getByText("admin").waitFor();
});

test("an invitation is revoked after a confirmation", async () => {
  const owner = await pages.api.owner();
  const email = newEmail();
  await owner.post(`/orgs/${owner.orgId}/invitations`, { email, role: "viewer" });
  const page = await pages.openAs(owner.email, "/members");
  await clickButton(page, `Revoke the invitation of ${email}`);
  await answerDialog(page, "Cancel");
  await getSection(page, "Invitations").getByText(email).waitFor();
  await clickButton(page, `Revoke the invitation of ${email}`);
  await answerDialog(page, "Revoke");
  await getSection(page, "Invitations").getByText("There are no open invitations.").waitFor();
});

test("the account page emails a link that changes the password", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/me");
  const password = getSection(page, "Password");
  await clickButton(page, "Email me a link");
  await password.getByRole("status").filter({ hasText: owner.email }).waitFor();
  await password.getByRole("note").filter({ hasText: "Ask the operator" }).waitFor();
  expect(await pages.findMailedLink("/reset", owner.email)).toMatch(/^\/reset#token=/);
});

test("a session is signed out at once after a confirmation", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/me");
  const sessions = getSection(page, "Sessions");
  await sessions.getByRole("button").first().click();
  await page.getByRole("dialog", { name: "Sign this session out?" }).waitFor();
  await answerDialog(page, "Sign out");
  await sessions.getByRole("button").waitFor({ state: "detached" });
  await sessions.getByText("this session").waitFor();
  expect(await owner.get("/auth/me")).toMatchObject({ status: 401 });
});

test("a session that was ended elsewhere ends on the page too", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/me");
  const { body } = await owner.get<{ sessions: Session[] }>("/auth/sessions");
  for (const { id, current } of body.sessions)
    if (!current) await owner.delete(`/auth/sessions/${id}`);
  await clickButton(page, "Set up");
  await page.getByRole("status").filter({ hasText: "Your session has ended." }).waitFor();
});

test("an organization is created and switched to, and the other tab follows", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/members");
  const [other] = await Promise.all([
    page.waitForEvent("popup"),
    page.evaluate("void window.open('/members')"),
  ]);
  await getSection(other, "Members").getByText(owner.email).waitFor();
  await page.getByRole("banner").getByRole("button").first().click();
  await page.getByRole("menuitem", { name: "New organization" }).click();
  await page.getByLabel("Name").fill("<b>Analytical</b> Engines");
  await answerDialog(page, "Create");
  await page.getByText("<b>Analytical</b> Engines was created.").waitFor();
  await page.getByRole("banner").getByRole("button").first().click();
  await page.getByRole("menuitemradio", { name: "<b>Analytical</b> Engines" }).click();
  for (const tab of [page, other]) {
    await tab.getByRole("button", { name: "<b>Analytical</b> Engines" }).waitFor();
    await getSection(tab, "Members").getByText(owner.email).waitFor();
  }
  await page.reload();
  await page.getByRole("button", { name: "<b>Analytical</b> Engines" }).waitFor();
});

test("members with permission change roles and remove members; others see no buttons for it", async () => {
  const owner = await pages.api.owner();
  const [member, viewer] = [
    await pages.api.colleague(owner, "member"),
    await pages.api.colleague(owner, "viewer"),
  ];
  const page = await pages.openAs(owner.email, "/members");
  await clickButton(page, `Change role of ${member.email}`);
  await page.getByLabel("New role").selectOption("admin");
  await answerDialog(page, "Change");
  const row = getSection(page, "Members").getByRole("listitem").filter({ hasText: member.email });
  await row.getByText("admin").waitFor();
  await clickButton(page, `Remove ${member.email}`);
  await answerDialog(page, "Remove");
  await row.waitFor({ state: "detached" });
  expect(await member.get("/tunnels")).toMatchObject({ status: 401 });

  await page.getByText("is now an admin.").waitFor({ state: "attached" });
  await getSection(page, "Members").getByText("as the only owner, you can't leave").waitFor();
  expect(await page.getByRole("button", { name: "Leave" }).count()).toBe(0);

  const viewerPage = await pages.openAs(viewer.email, "/members");
  await getSection(viewerPage, "Members").getByText(owner.email).waitFor();
  expect(await getSection(viewerPage, "Members").getByRole("button").allTextContents()).toEqual([
    "Leave",
  ]);
  await getSection(viewerPage, "Invitations").getByText("There are no open invitations.").waitFor();
  expect(await getSection(viewerPage, "Invitations").getByRole("button").count()).toBe(0);
});

test("an owner renames and deletes the organization, and continues in another one; an admin only renames it", async () => {
  const owner = await pages.api.owner();
  const admin = await pages.api.colleague(owner, "admin");
  const page = await pages.openAs(owner.email, "/members");
  await clickButton(page, "Rename");
  await page.getByLabel("New name").fill("Analytical Engines");
  await answerDialog(page, "Rename");
  const menu = page.getByRole("banner").getByRole("button").first();
  await menu.filter({ hasText: "Analytical Engines" }).waitFor();

  const adminPage = await pages.openAs(admin.email, "/members");
  const section = getSection(adminPage, "Organization");
  await section.getByRole("button", { name: "Rename" }).waitFor();
  expect(await section.getByRole("button").allTextContents()).toEqual(["Rename"]);

  await getSection(page, "Organization").getByRole("button", { name: "Delete" }).click();
  const dialog = getDialog(page);
  await dialog.getByRole("textbox").fill("Analytical Engines");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Analytical Engines was deleted.").waitFor();
  await menu.filter({ hasNotText: "Analytical Engines" }).waitFor();
  const own = getSection(page, "Members").getByRole("listitem");
  await own.filter({ hasText: owner.email }).waitFor();
  expect(await own.count()).toBe(1);
  expect(await admin.get("/tunnels")).toMatchObject({ status: 401 });
});

test("the access token is renewed once, shortly before it expires", async () => {
  const { email } = await pages.api.owner();
  const page = await pages.openSignedOut("/reset");
  await page.clock.install();
  const renewals: string[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/auth/refresh?user_id=")) renewals.push(request.method());
  });
  await page.goto(`${pages.origin}/me`);
  await signIn(page, email);
  await getSection(page, "Sessions").getByText("this session").waitFor();
  expect(renewals).toEqual([]);
  const renewed = page.waitForResponse((response) => response.url().includes("/auth/refresh"));
  await page.clock.fastForward((ACCESS_TOKEN_SECONDS - 30) * 1000);
  expect((await renewed).status()).toBe(200);
  expect(renewals).toEqual(["POST"]);
});

test("axe finds nothing on the sign-in, in the account menu and in a dialog", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openSignedOut("/members");
  await page.getByLabel("Email address").waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await signIn(page, owner.email);
  await waitForContent(page);
  await clickButton(page, "Your account");
  await page.getByRole("menu").waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await clickButton(page, "Invite a person");
  await page.getByLabel("Email address").waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
});

test("the form of a second factor passes axe, and fits a narrow screen", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/me");
  await getSection(page, "Sessions").getByText("this session").waitFor();
  await clickButton(page, "Set up");
  await page.getByLabel("Code from your authenticator app").waitFor();
  expect([...(await findPageProblems(page)), ...(await findUnnamed(page))]).toEqual([]);
});
