/** The editor of traffic policies in a real browser. */
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { z } from "zod";
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import type { TunnelPolicy } from "../../../protocol/schemas/access/policies.ts";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import {
  NARROW,
  findAccessibilityProblems,
  findOverflow,
} from "../../harness/browser/page-checks.ts";
import {
  answerDialog,
  clickButton,
  getDialog,
  getSection,
  usePages,
} from "../../harness/browser/pages.ts";
import { mintToken, startApi, type Person } from "../../harness/server/api.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { exchange, type Answer } from "../../harness/tunnel/raw-http.ts";
import { waitForCaptures } from "../../harness/tunnel/visited-tunnel.ts";

const pages = usePages(() => startApi());

const DENY = { kind: "deny", path_prefix: "/admin" };
const EDITOR = "Traffic policy in JSON";

let owner: Person;
let origin: RawOrigin;
let token: Buffer;
const agents: ExposedTunnel[] = [];
/** With captured requests. */
let visitedId: string;

beforeAll(async () => {
  owner = await pages.api.owner();
  token = Buffer.from((await mintToken(owner, { tunnelQuota: 10 })).wireBytes, "base64");
  origin = await startRawOrigin();
  visitedId = await startTunnel("policy-visited");
  for (const path of ["/", "/admin/users", "/%2e%2e/ADMIN", "/shop"])
    await visit("policy-visited", path);
  await waitForCaptures(owner, { tunnel_id: visitedId }, 4);
});
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.close()));
  await origin?.stop();
});

async function startTunnel(subdomain: string): Promise<string> {
  const { url } = pages.api.server;
  const agent = await expose({ server: url, token, port: origin.port, subdomain });
  agents.push(agent);
  return agent.tunnelId;
}

function visit(subdomain: string, path: string): Promise<Answer> {
  const { port } = pages.api.server;
  const host = `${subdomain}.localhost:${port}`;
  return exchange(port, `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
}

/** An idle tunnel. */
async function createTunnel(policy?: object): Promise<string> {
  const { body } = await owner.post<{ id: string }>("/tunnels", { localPort: 1 });
  if (policy) await owner.put(`/tunnels/${body.id}/policy`, policy);
  return body.id;
}

const getPolicy = async (id: string) =>
  (await owner.get<z.infer<typeof TunnelPolicy>>(`/tunnels/${id}/policy`)).body.policy;

const open = (id: string, query = "", email = owner.email) =>
  pages.openAs(email, `/tunnels/${id}?tab=policy${query}`);

async function typeJson(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: EDITOR }).click();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.insertText(text);
}

async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < 80; presses++) {
    if ((await target.and(page.locator(":focus")).count()) === 1) return;
    await page.keyboard.press("Tab");
  }
  throw new Error("the Tab key does not reach the element");
}

test("with the keyboard alone a rule is added, tested, reviewed and saved", async () => {
  const page = await open(visitedId);
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  await tabTo(page, button("Add a rule"));
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Deny a path" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByLabel("Path", { exact: true }).and(page.locator(":focus")).waitFor();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type("/admin");
  await tabTo(page, button("Test on recent requests"));
  await page.keyboard.press("Enter");
  const result = getSection(page, "Test on recent requests");
  await result.getByText("Of the last 4 requests, 2 would have ended differently.").waitFor();
  const rows = result.getByRole("table", { name: /^Requests/ }).getByRole("row");
  expect(await rows.nth(1).innerText()).toMatch(/GET \/%2e%2e\/ADMIN\s+200\s+403\s*rule 1/);
  expect(await rows.count()).toBe(3);
  expect(await getPolicy(visitedId)).toBeNull();

  await page.keyboard.press("Shift+Tab");
  await tabTo(page, button("Review and save"));
  await page.keyboard.press("Enter");
  const dialog = getDialog(page);
  await dialog.getByRole("textbox", { name: "Changes of the policy" }).waitFor();
  expect(await dialog.locator(".cm-changedLine").allTextContents()).toContain(
    '      "path_prefix": "/admin"',
  );
  await tabTo(page, dialog.getByRole("button", { name: "Save" }));
  await page.keyboard.press("Enter");
  await page.getByText("The policy is in force.").waitFor();
  expect(await getPolicy(visitedId)).toEqual({ actions: [DENY] });
  await page.getByText("Not saved").waitFor({ state: "detached" });
  await button("Review and save").and(page.locator(":focus")).waitFor();
  await owner.delete(`/tunnels/${visitedId}/policy`);
});

test("mistakes are shown at the fields of the form, and at their lines in the JSON", async () => {
  const page = await open(await createTunnel());
  await page.getByRole("button", { name: /^Hide admin pages/ }).click();
  await page.getByLabel("Path", { exact: true }).fill("admin");
  await clickButton(page, "Review and save");
  await page.getByText('It must start with "/".').waitFor();
  await page.getByRole("tab", { name: "JSON" }).click();
  await page.getByRole("alert").getByText('Rule 1: path_prefix must start with "/".').waitFor();
  const mark = page.locator(".cm-lintRange-error");
  await mark.waitFor();
  expect(await mark.innerText()).toBe('"admin"');

  await typeJson(page, '{\n"actions": [x\n}');
  await mark.waitFor();
  expect(await mark.innerText()).toBe("x");
  await clickButton(page, "Test on recent requests");
  await page.getByRole("alert").getByText("not valid JSON at line 2, column 13:").waitFor();
  await page.getByRole("tab", { name: "Form" }).click();
  await page.getByText("The form can't show this text.").waitFor();
  await page.getByRole("tab", { name: "JSON" }).click();
  await typeJson(page, JSON.stringify({ actions: [{ kind: "allow" }, DENY] }));
  await clickButton(page, "Test on recent requests");
  await page.getByRole("alert").getByText("Rule 1: kind must be one of").waitFor();
  await clickButton(page, "Discard the changes");
  await page.getByText("Not saved").waitFor({ state: "detached" });
});

test("rules are moved and removed, and the form and the JSON are the same document", async () => {
  const id = await createTunnel();
  const page = await open(id);
  await page.getByRole("button", { name: /^Block scanners/ }).click();
  await clickButton(page, "Move rule 1 down");
  await page.keyboard.press("Enter");
  await clickButton(page, "Remove rule 5");
  await clickButton(page, "Remove rule 4");
  await clickButton(page, "Add a rule");
  await page.getByRole("menuitem", { name: "Require a token (JWT)" }).click();
  // The order of the kinds is fixed.
  expect(await page.getByRole("button", { name: "Move rule 3 down" }).isDisabled()).toBe(true);
  await page.getByLabel("Issuers").fill("https://a.example\n\nhttps://b.example");
  await page.getByLabel("Forward the token").check();
  await clickButton(page, "Add from a template");
  await page.getByRole("menuitem", { name: "Rate limit by visitor" }).click();
  await page.getByLabel("Requests a minute").fill("5");
  await page.getByRole("tab", { name: "JSON" }).click();
  await page.getByRole("textbox", { name: EDITOR }).waitFor();
  await clickButton(page, "Review and save");
  await answerDialog(page, "Save");
  expect(await getPolicy(id)).toEqual({
    actions: [
      { kind: "deny", path_prefix: "/.git" },
      { kind: "deny", path_prefix: "/wp-admin" },
      { kind: "deny", path_prefix: "/.env" },
      {
        kind: "jwt_validation",
        allowed_issuers: ["https://a.example", "https://b.example"],
        forward_token: true,
      },
      { kind: "rate_limit", requests_per_minute: 5, per_client_ip: true },
    ],
  });
});

test("a request suggests rules, and changes are kept until they are saved or discarded", async () => {
  const { body } = await owner.get<CaptureSummary[]>(
    `/inspector?tunnel_id=${visitedId}&path=users`,
  );
  const page = await open(visitedId, `&from=${body[0]!.id}`);
  const suggestions = getSection(page, "Rules for this request");
  await suggestions.getByRole("link", { name: "GET /admin/users" }).waitFor();
  await suggestions.getByRole("button", { name: "Add the rule Deny /admin/", exact: true }).click();
  await suggestions.getByRole("button", { name: "Close" }).click();
  await suggestions.waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "Overview" }).click();
  await page.getByRole("tab", { name: "Policy" }).click();
  expect(await page.getByLabel("Path", { exact: true }).inputValue()).toBe("/admin/");

  await page.getByRole("link", { name: "Members" }).click();
  await page.getByText("has changes that are not saved").waitFor();
  await clickButton(page, "Go back");
  expect(await page.getByLabel("Path", { exact: true }).inputValue()).toBe("/admin/");
  const asking = page.waitForEvent("dialog");
  await page.evaluate("void setTimeout(() => location.reload())");
  const dialog = await asking;
  expect(dialog.type()).toBe("beforeunload");
  await dialog.dismiss();
  await clickButton(page, "Discard the changes");
  await page.getByRole("list", { name: "Templates" }).waitFor();
});

test("a rule that is made of a captured request refuses the next visitor", async () => {
  const id = await startTunnel("policy-made");
  await visit("policy-made", "/wp-login.php?user=admin");
  await waitForCaptures(owner, { tunnel_id: id }, 1);
  const page = await pages.openAs(owner.email, `/requests?tunnel_id=${id}`);
  const rows = page.getByRole("grid", { name: "Requests" }).locator("[data-id]");
  await rows.first().waitFor();
  await page.keyboard.press("m");
  await page.getByRole("menuitem", { name: "Make a rule from this request…" }).click();
  await clickButton(page, "Add the rule Deny /wp-login.php");
  await clickButton(page, "Review and save");
  await answerDialog(page, "Save");
  await page.getByText("The policy is in force.").waitFor();
  expect(await getPolicy(id)).toEqual({
    actions: [{ kind: "deny", path_prefix: "/wp-login.php" }],
  });
  expect((await visit("policy-made", "/wp-login.php")).status).toBe(403);
  expect((await visit("policy-made", "/shop")).status).toBe(200);

  await page.goBack();
  // A row that arrives later moves the others.
  await rows.filter({ hasText: "/shop" }).waitFor();
  await rows.filter({ hasText: "403" }).click();
  const detail = getSection(page, "Details of the request");
  await detail.getByRole("link", { name: "denied path" }).waitFor();
});

test("a policy is removed at once, and restored by the undo; viewers can only read it", async () => {
  const id = await createTunnel({ actions: [DENY] });
  const page = await open(id);
  await clickButton(page, "Remove the policy");
  await page.getByText("The policy was removed.").waitFor();
  expect(await getPolicy(id)).toBeNull();
  await clickButton(page, "Undo");
  await page.getByLabel("Path", { exact: true }).waitFor();
  expect(await getPolicy(id)).toEqual({ actions: [DENY] });

  const viewer = await pages.api.colleague(owner, "viewer");
  const viewerPage = await open(id, "", viewer.email);
  await viewerPage.getByLabel("Path", { exact: true }).waitFor();
  expect(await viewerPage.getByLabel("Path", { exact: true }).isDisabled()).toBe(true);
  const buttons = getSection(viewerPage, "Traffic policy").getByRole("button");
  expect(await buttons.allTextContents()).toEqual(["Test on recent requests"]);
});

test("a policy that another person has changed meanwhile is shown before it is replaced", async () => {
  const id = await createTunnel();
  const page = await open(id);
  await page.getByRole("button", { name: /^Block scanners/ }).click();
  await owner.put(`/tunnels/${id}/policy`, { actions: [DENY] });
  await clickButton(page, "Review and save");
  const dialog = getDialog(page);
  await dialog.getByText("The policy was changed since you opened it.").waitFor();
  const removed = dialog.locator(".cm-deletedChunk").getByText('"path_prefix": "/admin"');
  await removed.waitFor();

  const newer = { actions: [DENY, { kind: "deny", path_prefix: "/newer" }] };
  await owner.put(`/tunnels/${id}/policy`, newer);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("The policy was changed meanwhile, so that nothing was done.").waitFor();
  expect(await getPolicy(id)).toEqual(newer);
  await answerDialog(page, "Cancel");
  await clickButton(page, "Discard the changes");
  const paths = page.getByLabel("Path", { exact: true });
  await paths.nth(1).waitFor();

  // Without unsaved changes the page follows the policy in force.
  await owner.delete(`/tunnels/${id}/policy`);
  await page.getByRole("list", { name: "Templates" }).waitFor();
});

test("a test without captured requests shows the command for one, and its result as soon as it arrives", async () => {
  const id = await startTunnel("policy-idle");
  const page = await open(id);
  await page.getByRole("button", { name: /^Hide admin pages/ }).click();
  await clickButton(page, "Test on recent requests");
  const result = getSection(page, "Test on recent requests");
  await result.getByText(/^curl http:\/\/policy-idle\./).waitFor();
  await visit("policy-idle", "/admin");
  await result.getByRole("link", { name: "GET /admin" }).waitFor();
});

test("the command for the terminal serves the same tunnel: by its protocol, and in its project", async () => {
  await owner.post("/projects", { slug: "policies", name: "Policies" });
  const settings = { localPort: 8443, protocol: "https", projectSlug: "policies" };
  const { body } = await owner.post<{ id: string; name: string }>("/tunnels", settings);
  const page = await open(body.id);
  await page.getByText("Do this on the command line").click();
  const command = `underpass http https://localhost:8443 --subdomain ${body.name} --project policies --policy-file policy.yml`;
  await page.getByText(command).waitFor();
});

test("all parts are accessible, and fit a narrow screen", async () => {
  const page = await open(visitedId);
  await page.setViewportSize(NARROW);
  await page.getByRole("button", { name: /^Block scanners/ }).click();
  for (const template of ["Tokens for this tunnel", "Rate limit by visitor"]) {
    await clickButton(page, "Add from a template");
    await page.getByRole("menuitem", { name: template }).click();
  }
  await clickButton(page, "Test on recent requests");
  await page.getByRole("table", { name: "Results by rule" }).waitFor();
  await page.getByRole("tab", { name: "Form" }).click();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await page.getByRole("tab", { name: "JSON" }).click();
  await page.getByRole("textbox", { name: EDITOR }).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  expect(await findOverflow(page)).toEqual([]);
  await clickButton(page, "Review and save");
  await page.getByRole("textbox", { name: "Changes of the policy" }).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await answerDialog(page, "Cancel");
});
