/** The page of one captured request, in a real browser: its headers, messages and downloads. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { expose, type ExposedTunnel } from "../../../../agent/expose.ts";
import {
  HOSTILE_HTML,
  useCapturedPages,
  WEB_TOKEN,
} from "../../../harness/browser/captured-requests.ts";
import { findPageProblems } from "../../../harness/browser/page-checks.ts";
import { clickButton, getSection } from "../../../harness/browser/pages.ts";
import { mintToken, startApi } from "../../../harness/server/api.ts";
import { listCaptures, waitForCaptures } from "../../../harness/tunnel/visited-tunnel.ts";

const captured = useCapturedPages("detail-page", () => startApi());
const { pages, capture } = captured;

test("headers are filtered and copied, cookies and queries are split, and secrets are not there", async () => {
  const id = await capture(`/fields?a=1%2B1&token=${WEB_TOKEN}`, {
    headers: {
      ...Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`x-${n}`, `value-${n}`])),
      authorization: "Bearer secret",
      "x-long": "y".repeat(5_000),
    },
    response: { headers: { "x-html": HOSTILE_HTML } },
  });
  const page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  const request = getSection(page, "Request");
  await request.getByRole("row", { name: "a 1+1" }).waitFor();
  await request.getByRole("row", { name: "authorization redacted" }).waitFor();
  await request.getByRole("button", { name: "Show all 5,000 characters" }).click();
  await request.getByText("JSON Web Token").first().waitFor();
  const filter = request.getByLabel("Filter the request headers");
  await filter.pressSequentially("VAL-3");
  for (const key of ["ArrowLeft", "ArrowLeft"]) await filter.press(key);
  await filter.pressSequentially("UE");
  expect(await filter.inputValue()).toBe("VALUE-3");
  await page.waitForURL(/\?request_headers=VALUE-3$/);
  await request.getByText("value-4").waitFor({ state: "detached" });
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await clickButton(page, "Copy the value of x-3");
  await page.getByRole("button", { name: "Copied", exact: true }).waitFor();
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe("value-3");
  await clickButton(page, "Copy as curl");
  await page.getByText("The curl command was copied. Replace [redacted] in it.").waitFor();
  expect(await page.evaluate("navigator.clipboard.readText()")).toContain(
    "--header 'x-3: value-3'",
  );
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    clickButton(page, "Download HAR"),
  ]);
  expect(download.suggestedFilename()).toBe(`${id}.har`);
  expect(JSON.parse(await readFile(await download.path(), "utf8"))).toHaveProperty("log.entries");
  expect(await page.evaluate("window.hacked")).toBeUndefined();
});

test("beside the list on a laptop, the response to a request without a body needs no scrolling", async () => {
  const id = await capture("/short", { response: { body: "in sight" } });
  const page = await pages.openAs(captured.owner.email);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${pages.origin}/requests?selected=${id}`);
  const panel = getSection(page, "Details of the request");
  const body = (await panel.getByText("in sight").boundingBox())!;
  const shown = (await panel.boundingBox())!;
  expect(body.y + body.height).toBeLessThan(shown.y + shown.height);
});

test("headers that are hostile or as long as the server accepts are only text, each in its row", async () => {
  const script = "javascript:window.hacked=true";
  const id = await capture("/hostile-headers", {
    headers: {
      [`x-${"n".repeat(30_000)}`]: "long name",
      "x-large": HOSTILE_HTML + "v".repeat(90_000),
      "x-direction": "\u202egpj.exe",
      referer: script,
    },
    response: { headers: { location: script, refresh: `0;url=${script}`, link: `<${script}>` } },
  });
  const page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => dialogs.push(dialog.message()));
  const request = getSection(page, "Request");
  await request.getByRole("button", { name: /^Show all 90,\d+ characters$/ }).click();
  await request.getByRole("button", { name: "Show all 30,002 characters" }).waitFor();
  await request.getByRole("row", { name: "x-direction U+202Egpj.exe" }).waitFor();
  await getSection(page, "Response").getByText(script, { exact: true }).first().waitFor();
  expect(await page.locator("a[href^=javascript], iframe, img").count()).toBe(0);
  const cells = await request
    .getByRole("table", { name: "Headers of the request" })
    .locator("tbody td")
    .all();
  const edges = await Promise.all(cells.map(async (cell) => (await cell.boundingBox())?.x));
  expect(edges).toEqual(edges.map(() => edges[0]));
  expect(dialogs).toEqual([]);
  expect(await page.evaluate("window.hacked")).toBeUndefined();
});

test("a request links to the rule that refused or changed it", async () => {
  const { tunnelId } = captured.agent;
  const actions = [
    { kind: "deny", path_prefix: "/secret" },
    { kind: "header_set", name: "X-Shop", value: "set by a rule" },
  ];
  await captured.owner.put(`/tunnels/${tunnelId}/policy`, { actions });
  const id = await capture("/secret");
  const page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  await page.getByText("refused by").waitFor();
  const link = page.getByRole("link", { name: "denied path" });
  expect(await link.getAttribute("href")).toBe(`/tunnels/${tunnelId}?tab=policy`);
  await page.getByText("A rule of the traffic policy denies this path.").waitFor();
  expect(await page.title()).toBe("GET /secret 403 · Underpass");
  expect(await page.getByText("forbidden").allTextContents()).toEqual(["403 Forbidden"]);
  await page.getByText("Underpass answered this request itself.").waitFor();
  await page.goto(`${pages.origin}/requests/${await capture("/changed")}`);
  await page.getByText("headers set by").waitFor();
  await page.getByRole("row", { name: "x-shop set by a rule set by the traffic policy" }).waitFor();
});

describe("a WebSocket", () => {
  let agent: ExposedTunnel;
  let server: WebSocketServer;
  beforeAll(async () => {
    server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    server.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
    const { wireBytes } = await mintToken(captured.owner);
    agent = await expose({
      server: pages.api.server.url,
      token: Buffer.from(wireBytes, "base64"),
      port: (server.address() as { port: number }).port,
      subdomain: "detail-sockets",
    });
  });
  afterAll(async () => {
    await agent?.close();
    server?.close();
  });

  test("shows its messages while it is open, and why it was closed", async () => {
    const { port } = pages.api.server;
    const host = `detail-sockets.localhost:${port}`;
    const socket = new WebSocket(`ws://127.0.0.1:${port}/chat`, { headers: { host } });
    await once(socket, "open");
    const send = async (data: string | Buffer) => {
      socket.send(data);
      await once(socket, "message");
    };
    await send("<b>first</b>");
    const query = { tunnel_id: agent.tunnelId };
    const page = await pages.openAs(captured.owner.email);
    const { body } = await listCaptures(captured.owner, query);
    await page.goto(`${pages.origin}/requests/${body[0]!.id}`);
    const messages = getSection(page, "Messages");
    await messages.getByText("<b>first</b>").first().waitFor();
    await send(Buffer.from([1, 2, 255]));
    await messages.getByText("3 bytes").first().waitFor();
    socket.close(4001, "enough");
    await waitForCaptures(captured.owner, query, 1);
    await messages.getByRole("button", { name: "4001 enough" }).first().waitFor();

    await messages.getByRole("button", { name: "3 bytes" }).first().press("Enter");
    await messages.getByText("01 02 ff").waitFor();
    await messages.getByRole("button", { name: "4001" }).first().press("Enter");
    await messages.getByText("A code of this application").waitFor();
    await messages.getByLabel("Sender").selectOption("client");
    await messages.getByText("3 of 6 match").waitFor();
    await messages.getByLabel("Filter by text").fill("FIRST");
    await messages.getByText("1 of 6 match").waitFor();
    expect(new URL(page.url()).search).toBe("?sender=client&messages=FIRST");
  });
});

test("axe finds nothing, and a narrow screen does not scroll sideways", async () => {
  const json = `{"id": 1, "token": "${WEB_TOKEN}", "null": null, "text": "${"long ".repeat(100)}"}`;
  const path = `/accessible?token=${WEB_TOKEN}`;
  const id = await capture(path, {
    method: "POST",
    headers: { "content-type": "text/plain", "x-long-name-of-a-header": "v".repeat(300) },
    body: HOSTILE_HTML,
    response: { headers: { "content-type": "application/json" }, body: json },
  });
  const page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  const tree = page.getByRole("tree");
  await tree.focus();
  for (const key of ["Home", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  await page.getByText("$.token").waitFor();
  await page.getByText("Copy path").waitFor();
  await page.getByText("No replays: the server runs without ALLOW_REPLAY=true.").waitFor();
  expect(await page.getByRole("button", { name: /replay/i }).count()).toBe(0);
  await page.getByRole("tab", { name: "Hex" }).first().click();
  await page.getByRole("region", { name: "Request body as bytes" }).waitFor();
  expect(await findPageProblems(page)).toEqual([]);
});
