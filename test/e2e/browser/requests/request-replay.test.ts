/** Replays and comparisons of captured requests, in a real browser and with a real agent. */
import { expect, test } from "vitest";
import { useCapturedPages } from "../../../harness/browser/captured-requests.ts";
import {
  findAccessibilityProblems,
  findPageProblems,
} from "../../../harness/browser/page-checks.ts";
import { clickButton, getSection, waitForContent } from "../../../harness/browser/pages.ts";
import { startApi } from "../../../harness/server/api.ts";
import { captureWithoutHeaders, LARGE_TEXT } from "../../../harness/tunnel/large-heads.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";

const captured = useCapturedPages(
  "detail-replays",
  () => startApi({ env: { ALLOW_REPLAY: "true" } }),
  false,
);
const { pages, capture } = captured;

const allowReplay = (isAllowed: boolean) =>
  captured.owner.put(`/tunnels/${captured.agent.tunnelId}/inspector`, { allowReplay: isAllowed });

const json = (value: object) => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});

test("replays that the tunnel does not allow are allowed beside the request; then it shows the new response", async () => {
  const id = await capture("/replayed", {
    method: "POST",
    ...json({ order: 1 }),
    response: json({ paid: false }),
  });
  const page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  const allow = page.getByRole("button", { name: "Allow replays for detail-replays" });
  await allow.waitFor();
  expect(await page.getByRole("button", { name: "Replay", exact: true }).count()).toBe(0);
  await allow.click();
  // It replaces the button that had the focus.
  const replayButton = page.getByRole("button", { name: "Replay", exact: true });
  await replayButton.and(page.locator(":focus")).waitFor();
  captured.origin.requests.length = 0;
  await clickButton(page, "Replay");
  const replay = getSection(page, "Replay");
  await replay.getByText("same response").waitFor();
  await getSection(page, "Response to the replay").getByText("paid").waitFor();
  expect(captured.origin.requests.map(({ body }) => body.toString())).toEqual(['{"order":1}']);
  await replay.getByRole("link", { name: "Open the new request" }).click();
  await page.getByText("replay of").waitFor();
  await page.getByRole("link", { name: "this request" }).click();
  await page.waitForURL(`**/requests/${id}`);
});

test("a request is edited and replayed by keyboard alone, and both responses are compared", async () => {
  await allowReplay(true);
  const id = await capture("/edited?old=1", {
    method: "POST",
    ...json({ order: 1 }),
    response: json({ status: "open", total: 1 }),
  });
  await capture("/changed", { response: { status: 201, ...json({ status: "paid", total: 1 }) } });
  const page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  captured.origin.requests.length = 0;
  await page.keyboard.press("e");
  const method = page.getByLabel("Method");
  await method.waitFor();
  await expectFocus("Method");
  await page.keyboard.type("PUT");
  await pressTab();
  await page.keyboard.type("/changed");
  await pressTab();
  await page.keyboard.press("Delete");
  await pressTab();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type("\nx-edited: yes");
  await page.keyboard.press("Tab");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type('{"order":2}');
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");

  const replay = getSection(page, "Replay");
  await replay.getByText("different response").waitFor();
  await replay.getByRole("row", { name: "Status 200 OK 201 Created" }).waitFor();
  await replay.getByRole("row", { name: 'body /status "open" "paid"' }).waitFor();
  const [request] = captured.origin.requests;
  expect([request?.method, request?.target, request?.body.toString()]).toEqual([
    "PUT",
    "/changed",
    '{"order":2}',
  ]);
  expect(request?.headers).toContainEqual(["x-edited", "yes"]);
  expect(await findAccessibilityProblems(page)).toEqual([]);

  await replay.getByRole("link", { name: "Compare everything" }).press("Enter");
  await page.getByRole("heading", { name: "Compare two requests" }).waitFor();
  await getSection(page, "Request line")
    .getByRole("row", { name: "Path /edited /changed" })
    .waitFor();
  const body = getSection(page, "Response body");
  await body.getByRole("textbox", { name: "Response body, original" }).waitFor();
  await body.getByText('"open"').waitFor();
  await body.getByText('"paid"').waitFor();
  expect(await findPageProblems(page)).toEqual([]);

  async function pressTab(): Promise<void> {
    await page.keyboard.press("Tab");
    await page.keyboard.press("ControlOrMeta+a");
  }
  async function expectFocus(label: string): Promise<void> {
    await page.waitForFunction(
      `document.activeElement?.labels?.[0]?.textContent === ${JSON.stringify(label)}`,
    );
    await page.keyboard.press("ControlOrMeta+a");
  }
});

test("keys replay, edit and copy the active request of the list", async () => {
  await allowReplay(true);
  const id = await capture("/listed?page=2", { method: "POST", ...json({ order: 1 }) });
  const page = await pages.openAs(captured.owner.email, "/requests?filter=path%3A%2Flisted");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const readClipboard = () => page.evaluate<string>("navigator.clipboard.readText()");
  const rows = page.getByRole("grid", { name: "Requests" }).locator("[data-id]");
  await rows.first().waitFor();
  await page.keyboard.press("c");
  await page.getByText("The curl command was copied.").waitFor();
  const command = await readClipboard();
  expect(command).toBe((await captured.owner.get<string>(`/inspector/${id}/curl`)).body);
  expect(command).toContain("/listed?page=2");

  await page.keyboard.press("m");
  await page.getByRole("menuitem", { name: "Open", exact: true }).waitFor();
  await page.getByRole("menuitem", { name: "Edit and replay" }).waitFor();
  await page.getByRole("menuitem", { name: "Download HAR" }).waitFor();
  // "Copy as curl" follows.
  await page.keyboard.type("copy u");
  await page.keyboard.press("Enter");
  await page.getByText("The URL was copied.").waitFor();
  expect(await readClipboard()).toBe(`http://${captured.host}/listed?page=2`);

  captured.origin.requests.length = 0;
  await page.keyboard.press("r");
  await page.getByText("POST /listed was replayed: 200.").waitFor();
  await rows.first().getByText("replay", { exact: true }).waitFor();
  expect(await rows.count()).toBe(2);
  // The active request is still the original one.
  await page.keyboard.press("e");
  const detail = getSection(page, "Details of the request");
  await detail.getByLabel("Method").waitFor();
  await page.waitForFunction("document.activeElement?.labels?.[0]?.textContent === 'Method'");
  expect(new URL(page.url()).searchParams.get("selected")).toBe(id);
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("PUT");
  await page.keyboard.press("Enter");
  await detail.getByText("same response").waitFor();
  const sent = captured.origin.requests.map(({ method, target, body }) => [
    method,
    target,
    body.toString(),
  ]);
  expect(sent).toEqual([
    ["POST", "/listed?page=2", '{"order":1}'],
    ["PUT", "/listed?page=2", '{"order":1}'],
  ]);
});

test("a command is copied while it loads, as Safari requires; a refusal of the browser says so", async () => {
  const id = await capture("/copied", json({ order: 1 }));
  const page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  const copy = page.getByRole("button", { name: "Copy as curl" });
  await copy.waitFor();
  const copying = Promise.withResolvers<void>();
  await page.exposeFunction("reportCopy", copying.resolve);
  await page.evaluate(`{
    const { write } = navigator.clipboard;
    navigator.clipboard.write = (items) => (reportCopy(), write.call(navigator.clipboard, items));
  }`);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.route("**/curl", async (route) => {
    await copying.promise;
    await route.continue();
  });
  await copy.click();
  await page.getByText("The curl command was copied.").waitFor();
  expect(await page.evaluate("navigator.clipboard.readText()")).toContain("/copied");

  await page.context().clearPermissions();
  await copy.click();
  await page.getByText("The browser did not let this page copy.").first().waitFor();
});

test("a request without its headers says so, and can't be replayed or copied; a response without them is not compared", async () => {
  await allowReplay(true);
  const { owner, agent, host, origin } = captured;
  const visit = (target: string) =>
    exchange(pages.api.server.port, `GET ${target} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  const request = await captureWithoutHeaders(owner, agent.tunnelId, (path) =>
    visit(path + LARGE_TEXT),
  );
  const page = await pages.openAs(owner.email, `/requests/${request.id}`);
  await getSection(page, "Request")
    .getByText("The headers and the end of a long path were not stored")
    .waitFor();
  await getSection(page, "Response").getByText("content-length").waitFor();
  expect(await page.getByRole("button", { name: /replay|curl/i }).count()).toBe(0);
  await page.keyboard.press("e");
  expect(await page.getByLabel("Method").count()).toBe(0);
  expect(await findPageProblems(page)).toEqual([]);
  const path = request.path.replace(/p+$/, "");
  await page.goto(`${pages.origin}/requests?filter=${encodeURIComponent(`path:${path}`)}`);
  await page.getByRole("grid", { name: "Requests" }).locator("[data-id]").waitFor();
  await page.keyboard.press("m");
  await page.getByRole("menuitem", { name: "Download HAR" }).waitFor();
  expect(await page.getByRole("menuitem", { name: /replay|curl/i }).count()).toBe(0);

  const { respond } = origin;
  origin.respond = () => `HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-large: ${LARGE_TEXT}\r\n\r\nok`;
  const response = await captureWithoutHeaders(owner, agent.tunnelId, visit);
  origin.respond = respond;
  await page.goto(`${pages.origin}/requests/${response.id}`);
  await getSection(page, "Response").getByText("The headers were not stored").waitFor();
  await getSection(page, "Request").getByText("host", { exact: true }).waitFor();
  await clickButton(page, "Replay");
  const replay = getSection(page, "Replay");
  await replay.getByText("same response").waitFor();
  await replay.getByText("so they are not compared").waitFor();
  await replay.getByRole("link", { name: "Compare everything" }).click();
  await getSection(page, "Response headers").getByText("Not compared").waitFor();
  expect(await findPageProblems(page)).toEqual([]);
});

test("an error of an edit is shown at its field", async () => {
  await allowReplay(true);
  const id = await capture("/invalid");
  const page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  await clickButton(page, "Edit and replay");
  expect(await findPageProblems(page)).toEqual([]);
  await page.getByLabel("Headers", { exact: true }).fill("accept */*");
  await clickButton(page, "Send");
  await page.getByText("Line 1 has no colon.").waitFor();
  await page.getByLabel("Headers", { exact: true }).fill("accept: */*");
  await page.getByLabel("Path").fill("no slash");
  await clickButton(page, "Send");
  await page.getByText('must start with "/"').waitFor();
  await page.getByLabel("Path").fill("/invalid");
  await captured.agent.close();
  await clickButton(page, "Send");
  await page.getByRole("alert").filter({ hasText: "No agent is connected" }).waitFor();
});

test("a viewer can't replay", async () => {
  const { body } = await captured.owner.get<{ id: string }[]>("/inspector?limit=1");
  const viewer = await pages.api.colleague(captured.owner, "viewer");
  const page = await pages.openAs(viewer.email, `/requests/${body[0]!.id}`);
  await waitForContent(page);
  await page.getByRole("button", { name: "Download HAR" }).waitFor();
  expect(await page.getByRole("button", { name: "Replay" }).count()).toBe(0);
  await page.keyboard.press("r");
  await page.keyboard.press("e");
  expect(await page.getByLabel("Method").count()).toBe(0);
});
