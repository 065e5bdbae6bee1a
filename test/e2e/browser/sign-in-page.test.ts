/** Signing up, in and out in a real browser. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { newEmail, PASSWORD, startApi, waitUntil } from "../../harness/server/api.ts";
import {
  waitForContent,
  getSection,
  clickButton,
  signIn,
  usePages,
} from "../../harness/browser/pages.ts";
import { generateCode, enableSecondFactor } from "../../harness/browser/second-factor.ts";

const pages = usePages(() => startApi());
const waitForStatus = (page: Page, text: string | RegExp) =>
  page.getByRole("status").filter({ hasText: text }).waitFor();
const waitForAlert = (page: Page, text: string | RegExp) =>
  page.getByRole("alert").filter({ hasText: text }).waitFor();
const readFocusedText = (page: Page) =>
  page.evaluate("(document.activeElement.labels?.[0] ?? document.activeElement).textContent");

test("a new user signs up with the mailed code and stays signed in after a reload", async () => {
  const email = newEmail();
  const page = await pages.openSignedOut("/");
  await clickButton(page, "Create an account");
  expect(await readFocusedText(page)).toBe("Email address");
  await page.getByLabel("Email address").fill(email);
  await page.getByLabel("Password").fill("too short");
  await clickButton(page, "Create account");
  const field = page.locator(".field").filter({ hasText: "Password" });
  await field.getByText("Use at least 12 characters.", { exact: true }).waitFor();
  expect(await field.innerText()).toBe("Password\nUse at least 12 characters.");
  await page.getByLabel("Password").fill("passwordpassword");
  await clickButton(page, "Create account");
  await page.getByText("It is among the most common passwords.").waitFor();
  expect(await readFocusedText(page)).toBe("Password");
  await page.getByLabel("Password").fill(PASSWORD);
  await clickButton(page, "Create account");

  await page.getByLabel("Code").fill("000000");
  await clickButton(page, "Confirm");
  await waitForAlert(page, "The code is wrong");
  const code = await pages.api.getMailedCode(email);
  await page.getByLabel("Code").fill(`${code.slice(0, 3)} ${code.slice(3)}`);
  await clickButton(page, "Confirm");
  await waitForContent(page);
  expect(await readFocusedText(page)).toBe("Overview");

  await page.goto(`${pages.origin}/me`);
  await page.getByText(`Signed in as ${email}.`).waitFor();
  const storageScript = "JSON.stringify([localStorage, sessionStorage, document.cookie])";
  expect(await page.evaluate(storageScript)).not.toMatch(/eyJ|\./);
});

test("a wrong password is reported, and the right one signs in", async () => {
  const { email } = await pages.api.owner();
  const page = await pages.openSignedOut("/");
  await signIn(page, email, "not the password");
  await waitForAlert(page, "The email address or the password is wrong");
  await signIn(page, email);
  await waitForContent(page);
  await clickButton(page, "Your account");
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await waitForStatus(page, "You have been signed out.");
  await page.reload();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
});

test("a forgotten password is replaced with the link in the email, once", async () => {
  const { email } = await pages.api.owner();
  const page = await pages.openSignedOut("/");
  await clickButton(page, "Forgot your password?");
  await page.getByLabel("Email address").fill(email);
  await clickButton(page, "Send the link");
  await page.getByText("a link is on its way").waitFor();
  await page
    .getByRole("note")
    .filter({ hasText: "Ask the operator of the server for the link" })
    .waitFor();

  const link = await pages.findMailedLink("/reset", email);
  const reset = await pages.openSignedOut(link);
  await reset.getByLabel("New password").fill("another horse, another staple");
  const revoke = reset
    .getByRole("group", { name: "Tokens you created" })
    .getByLabel(/^Revoke them/);
  expect(await revoke.isChecked()).toBe(true);
  expect(new URL(reset.url()).hash).toBe("");
  await clickButton(reset, "Set the password");
  await waitForStatus(reset, "Your new password is set");
  await reset.getByRole("link", { name: "Sign in" }).click();
  await signIn(reset, email, "another horse, another staple");
  await waitForContent(reset);

  const again = await pages.openSignedOut(link);
  await again.getByLabel("New password").fill("a third horse, a third staple");
  await clickButton(again, "Set the password");
  await again.getByRole("heading", { name: "This link is no longer valid" }).waitFor();
});

test("the second factor is set up, required, and turned off with a recovery code", async () => {
  const { email } = await pages.api.owner();
  const page = await pages.openAs(email, "/me");
  const factor = getSection(page, "Two-factor authentication");
  await clickButton(page, "Set up");
  await factor.getByRole("img", { name: "QR code" }).waitFor();
  const secret = (await factor.locator(".shown").textContent())?.replaceAll(" ", "") ?? "";
  await page.getByLabel("Code from your authenticator app").fill(generateCode(secret));
  await clickButton(page, "Turn on");
  await page.getByText("They will not be shown again.").waitFor();
  const recoveryCodes = await factor.getByRole("listitem").allTextContents();
  expect(recoveryCodes).toHaveLength(10);
  const events = getSection(page, "Your recent events");
  await events.getByText("You turned on two-factor authentication").waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    clickButton(page, "Download as a file"),
  ]);
  expect(await readFile(await download.path(), "utf8")).toBe(`${recoveryCodes.join("\n")}\n`);
  await clickButton(page, "I have stored them");
  await factor.getByText("On: signing in also requires a code").waitFor();

  await clickButton(page, "Sign out");
  await signIn(page, email);
  await page.getByLabel("Code from your authenticator app").fill("123456");
  await clickButton(page, "Continue");
  await waitForAlert(page, "The code is wrong");
  await page.getByLabel("Code from your authenticator app").fill(generateCode(secret, 1));
  await clickButton(page, "Continue");
  await waitForContent(page);

  await clickButton(page, "Turn off");
  await clickButton(page, "Use a recovery code");
  await page.getByLabel("Recovery code").fill(recoveryCodes[3] ?? "");
  await clickButton(page, "Turn off");
  await page.getByText("Two-factor authentication is off.").waitFor();
  await factor.getByText("Off: anyone who knows your password").waitFor();
});

test("an old sign-in asks for the password before the second factor is set up", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/me");
  await pages.api.sql(
    "update sessions set authenticated_at = now() - interval '1 hour' where user_id = $1",
    [owner.userId],
  );
  await clickButton(page, "Set up");
  await page.getByLabel("Your password").fill("not the right password");
  await clickButton(page, "Continue");
  await waitForAlert(page, "The password is wrong");
  await page.getByLabel("Your password").fill(PASSWORD);
  await clickButton(page, "Continue");
  await page.getByLabel("Code from your authenticator app").waitFor();
  const events = getSection(page, "Your recent events");
  await events.getByText("You confirmed your identity with your password").waitFor();
  await events.getByText("You failed to confirm your identity with your password").waitFor();
});

test("a second factor that is lost is removed with the mailed link, unless that is canceled", async () => {
  const owner = await pages.api.owner();
  await enableSecondFactor(pages.api, owner);
  const page = await pages.openSignedOut("/");
  await signIn(page, owner.email);
  await clickButton(page, "I lost both");
  await clickButton(page, "Send the link");
  await waitForStatus(page, "A link is on its way");
  const link = await pages.findMailedLink("/two-factor", owner.email);

  const early = await pages.openSignedOut(link);
  await clickButton(early, "Remove two-factor authentication");
  await waitForAlert(early, "The link can't be used before");
  await pages.api.sql("update mfa_removals set usable_at = now() where user_id = $1", [
    owner.userId,
  ]);
  await clickButton(early, "Remove two-factor authentication");
  await waitForStatus(early, "Two-factor authentication is off.");
  await early.getByRole("link", { name: "Go to sign-in" }).click();
  await signIn(early, owner.email);
  await waitForContent(early);

  const late = await pages.openSignedOut(link);
  await clickButton(late, "Cancel the request");
  await late.getByRole("heading", { name: "This link is no longer valid" }).waitFor();
});

test("a user whose address a stranger has used chooses the password by mail", async () => {
  const email = newEmail();
  await pages.api.anonymous.post("/auth/signup", { email, password: "the stranger's password" });
  await pages.api.getMailedCode(email);
  const page = await pages.openSignedOut("/");
  await clickButton(page, "Create an account");
  await page.getByLabel("Email address").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await clickButton(page, "Create account");
  await page.getByLabel("Code").waitFor();
  await waitUntil(async () => (await pages.api.readMailsTo(email)).length === 2);
  await page.getByLabel("Code").fill(await pages.api.getMailedCode(email));
  await clickButton(page, "Confirm");
  await page.getByRole("heading", { name: "Choose your password" }).waitFor();
  const reset = await pages.openSignedOut(await pages.findMailedLink("/reset", email));
  await reset.getByLabel("New password").fill("another horse, another staple");
  const revoke = reset
    .getByRole("group", { name: "Tokens you created" })
    .getByLabel(/^Revoke them/);
  expect(await revoke.isChecked()).toBe(true);
  await clickButton(reset, "Set the password");
  await waitForStatus(reset, "Your new password is set");
});

test("a user with a second factor approves a machine", async () => {
  const owner = await pages.api.owner();
  const { recoveryCodes } = await enableSecondFactor(pages.api, owner);
  const start = { label: "my laptop" };
  const { body } = await pages.api.anonymous.post<{ user_code: string; device_code: string }>(
    "/auth/cli/start",
    start,
  );
  const page = await pages.openSignedOut(`/activate?code=${body.user_code}`);
  await signIn(page, owner.email);
  await clickButton(page, "Use a recovery code");
  await page.getByLabel("Recovery code").fill(recoveryCodes[0] ?? "");
  await clickButton(page, "Continue");
  await page.getByText("my laptop requests access to open tunnels").waitFor();
  await clickButton(page, "Approve");
  await waitForStatus(page, "Done.");
  const { device_code } = body;
  const poll = await pages.api.anonymous.post("/auth/cli/poll", { device_code });
  expect(poll).toMatchObject({ status: 200, body: { label: "my laptop" } });
});

test("a user of several organizations chooses the one that a machine opens tunnels for", async () => {
  const owner = await pages.api.owner();
  const { body: team } = await owner.post<{ id: string }>("/orgs", { name: "Analytical Engines" });
  const { body } = await pages.api.anonymous.post<{ user_code: string; device_code: string }>(
    "/auth/cli/start",
    { label: "my laptop" },
  );
  const page = await pages.openAs(owner.email, "/activate");
  await page.getByLabel("Code from your command line").fill(body.user_code);
  await clickButton(page, "Continue");
  await page.getByLabel("Organization").selectOption("Analytical Engines");
  await page
    .getByText("my laptop requests access to open tunnels for Analytical Engines")
    .waitFor();
  await clickButton(page, "Approve");
  await waitForStatus(page, "Done.");
  const { device_code } = body;
  expect((await pages.api.anonymous.post("/auth/cli/poll", { device_code })).status).toBe(200);
  const tokens = await pages.api.sql("select name from tokens where org_id = $1", [team.id]);
  expect(tokens).toEqual([{ name: "my laptop" }]);
});

test("a viewer approves a machine for an organization of their own", async () => {
  const viewer = await pages.api.colleague(await pages.api.owner(), "viewer");
  await viewer.post("/orgs", { name: "Analytical Engines" });
  const { body } = await pages.api.anonymous.post<{ user_code: string }>("/auth/cli/start", {});
  const page = await pages.openAs(viewer.email, `/activate?code=${body.user_code}`);
  await waitForAlert(page, "Only members");
  await page.getByLabel("Organization").selectOption("Analytical Engines");
  await clickButton(page, "Approve");
  await waitForStatus(page, "Done.");
});

test("a user denies the sign-in of a machine", async () => {
  const owner = await pages.api.owner();
  const { body } = await pages.api.anonymous.post<{ user_code: string; device_code: string }>(
    "/auth/cli/start",
    { label: "a foreign machine" },
  );
  const page = await pages.openSignedOut(`/activate?code=${body.user_code}`);
  await signIn(page, owner.email);
  await clickButton(page, "Deny");
  await waitForStatus(page, "Denied. The machine got no access.");
  const { device_code } = body;
  const poll = await pages.api.anonymous.post("/auth/cli/poll", { device_code });
  expect(poll).toMatchObject({ status: 400, body: { error: "access_denied" } });
});

test("a provider signs a user in, and leads back to the page where it started", async () => {
  const email = newEmail();
  pages.provider.user = { sub: email, email, email_verified: true };
  const page = await pages.openSignedOut("/activate?code=BCDF-GHJK");
  const addresses: string[] = [];
  page.on("framenavigated", (frame) => addresses.push(frame.url()));
  await page.getByRole("link", { name: "Continue with single sign-on" }).click();
  await waitForAlert(page, "The code is wrong");
  expect(addresses.some((url) => url.includes("oauth_token="))).toBe(true);
  expect(page.url()).toBe(`${pages.origin}/activate?code=BCDF-GHJK`);
  await page.getByRole("link", { name: "Underpass" }).click();
  await waitForContent(page);
  await clickButton(page, "Your account");
  await page.getByText(email).waitFor();
});

test("a sign-in through a provider still requires the second factor", async () => {
  const owner = await pages.api.owner();
  const { secret } = await enableSecondFactor(pages.api, owner);
  pages.provider.user = { sub: owner.email, email: owner.email, email_verified: true };
  const page = await pages.openSignedOut("/");
  await page.getByRole("link", { name: "Continue with single sign-on" }).click();
  await page.getByLabel("Code from your authenticator app").fill(generateCode(secret, 1));
  expect(page.url()).toBe(`${pages.origin}/`);
  await clickButton(page, "Continue");
  await waitForContent(page);
});

test("a sign-in that is denied at the provider leads back, with a message", async () => {
  pages.provider.user = null;
  const page = await pages.openSignedOut("/");
  await page.getByRole("link", { name: "Continue with single sign-on" }).click();
  await waitForStatus(page, "The sign-in was denied at the provider.");
  expect(page.url()).toBe(`${pages.origin}/`);
});

test("a token is removed from the address bar before any request, and signs in its own browser only", async () => {
  const { accessToken, cookie, email } = await pages.api.owner();
  const page = await pages.openSignedOut("/reset");
  const requestedUrls: string[] = [];
  page.on("request", (request) =>
    requestedUrls.push(request.headers().referer ?? "", request.url()),
  );
  const openWithToken = async () => {
    await page.goto(`${pages.origin}/?oauth_token=${accessToken}&other=1#section=2`);
    await page.waitForURL(`${pages.origin}/?other=1#section=2`);
  };
  await openWithToken();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();

  const [name = "", value = ""] = cookie.split("=");
  await page
    .context()
    .addCookies([{ name, value, domain: "localhost", path: "/auth", httpOnly: true }]);
  await openWithToken();
  await waitForContent(page);
  await clickButton(page, "Your account");
  await page.getByText(email).waitFor();
  const leaks = requestedUrls.filter((text) => text.includes(accessToken));
  expect(leaks.every((url) => url.startsWith(`${pages.origin}/?oauth_token=`))).toBe(true);
  expect(leaks).toHaveLength(2);
});
