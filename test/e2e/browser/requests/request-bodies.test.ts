/** Bodies of captured requests, in a real browser. They are from visitors, who may be hostile. */
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { expect, test, vi } from "vitest";
import {
  HOSTILE_HTML,
  useCapturedPages,
  WEB_TOKEN,
} from "../../../harness/browser/captured-requests.ts";
import { clickButton, getSection, waitForContent } from "../../../harness/browser/pages.ts";
import { startApi } from "../../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const captured = useCapturedPages("detail-bodies", () => startApi());
const { pages, capture } = captured;

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==",
  "base64",
);
/** Black, 16 by 8 pixels, and to be shown turned by 90 degrees (Exif). */
const TURNED_JPEG = Buffer.from(
  [
    "ffd8ffe10022457869660000",
    "4d4d002a0000000800010112000300000001000600000000",
    "0000",
    `ffdb004300${"01".repeat(64)}`,
    "ffc0000b080008001001011100",
    `ffc400140001${"00".repeat(16)}ffc400141001${"00".repeat(16)}`,
    "ffda0008010100003f000fffd9",
  ].join(""),
  "hex",
);

/** Opens a captured request in a page that is signed in already. */
async function show(id: string): Promise<void> {
  await page.goto(`${pages.origin}/requests/${id}`);
  await waitForContent(page);
}

const answer = (type: string, body: Buffer | string, encoding?: string) => ({
  response: {
    headers: { "content-type": type, ...(encoding && { "content-encoding": encoding }) },
    body,
  },
});

let page: Page;
const open = async (id: string) => {
  page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  return getSection(page, "Response");
};

test("a body of any type is shown as text or data, and never runs", async () => {
  const cases: [path: string, type: string, body: Buffer | string, shown: string][] = [
    ["/page", "text/html", HOSTILE_HTML, HOSTILE_HTML],
    ["/svg", "image/svg+xml", `<svg onload="window.hacked = true"/>`, "<svg onload="],
    ["/js", "text/javascript", "window.hacked = true", "window.hacked = true"],
    ["/bidi", "text/plain", "safe\u202Etxt.exe", "U+202E"],
    ["/latin", "text/plain; charset=iso-8859-1", Buffer.from("caf\xe9", "latin1"), "café"],
    ["/klingon", "text/plain; charset=klingon", "qapla", "is unknown"],
    [
      "/form",
      "application/x-www-form-urlencoded",
      `a=${encodeURIComponent(HOSTILE_HTML)}`,
      HOSTILE_HTML,
    ],
    ["/broken", "application/json", '{\n  "a": oops\n}', "in line 2, column 8"],
    ["/untyped", "", '{"a": "found"}', '"found"'],
    ["/empty-image", "image/png", "no image", "damaged or incomplete"],
    ["/bomb", "image/png", withSize(PNG, 100_000), "too large to be shown"],
    ["/no-boundary", "multipart/form-data", "--x", "no boundary"],
    ["/bytes", "application/octet-stream", Buffer.from([0, 1, 254]), "00 01 fe"],
  ];
  const ids: string[] = [];
  for (const [path, type, body] of cases) ids.push(await capture(path, answer(type, body)));
  const response = await open(ids[0]!);
  for (const [index, [, , , shown]] of cases.entries()) {
    if (index > 0) await show(ids[index]!);
    await response.getByText(shown).first().waitFor();
  }
  await show(await capture("/photo", answer("image/jpeg", TURNED_JPEG)));
  const photo = response.getByRole("img", { name: "Response body as an image" });
  const readSize = async () => [
    await photo.getAttribute("width"),
    await photo.getAttribute("height"),
  ];
  await expect.poll(readSize, WAIT_OPTIONS).toEqual(["8", "16"]);
  expect(await page.evaluate("window.hacked")).toBeUndefined();
});

test("a body of compressed JSON is a tree for the keyboard, with exact numbers and decoded tokens", async () => {
  const json = `{"id": 12345678901234567890, "token": "${WEB_TOKEN}", "text": "${Buffer.from("plain text in base64").toString("base64")}", "list": [1, [2]]}`;
  const id = await capture("/json", answer("application/json", gzipSync(json), "gzip"));
  const response = await open(id);
  await response.getByText("Decompressed (gzip)").waitFor();
  const tree = response.getByRole("tree");
  await tree.getByText("12345678901234567890").waitFor();
  await tree.focus();
  for (const key of ["Home", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  await response.getByText("$.token").waitFor();
  await response.getByText("JSON Web Token").click();
  await response.getByText("Expires").waitFor();
  await response.getByText("signature not verified").waitFor();
  await tree.focus();
  await page.keyboard.press("ArrowDown");
  await response.getByText("$.text").waitFor();
  await clickButton(page, "Decode base64");
  await response.getByText("plain text in base64").waitFor();
  await tree.focus();
  const list = tree.getByRole("treeitem").filter({ hasText: "list:" });
  for (const key of ["ArrowDown", "ArrowLeft"]) await page.keyboard.press(key);
  expect(await list.getAttribute("aria-expanded")).toBe("false");
  await page.keyboard.press("ArrowRight");
  expect(await list.getAttribute("aria-expanded")).toBe("true");
  expect(await tree.getAttribute("aria-activedescendant")).toBe(await list.getAttribute("id"));
});

test("a body with parts shows each part by its own type", async () => {
  const body = Buffer.concat([
    Buffer.from(`--b\r\nContent-Disposition: form-data; name="note"\r\n\r\n${HOSTILE_HTML}\r\n`),
    Buffer.from('--b\r\nContent-Disposition: form-data; name="photo"; filename="a.png"\r\n'),
    Buffer.from("Content-Type: image/png\r\n\r\n"),
    PNG,
    Buffer.from("\r\n--b--"),
  ]);
  const headers = { "content-type": "multipart/form-data; boundary=b" };
  const id = await capture("/parts", { method: "POST", headers, body });
  page = await pages.openAs(captured.owner.email, `/requests/${id}`);
  const request = getSection(page, "Request");
  // A short field is open at first.
  await request.getByText(HOSTILE_HTML).waitFor();
  await request.getByText("a.png").click();
  await request.getByRole("img", { name: "Part 2 as an image" }).waitFor();
  expect(await page.evaluate("window.hacked")).toBeUndefined();
});

test("beside the list, both bodies of a small request are next to each other and in view", async () => {
  const id = await capture("/small", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"asked":1}',
    ...answer("application/json", '{"answered":2}'),
  });
  page = await pages.openAs(captured.owner.email, "/members");
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto(`${pages.origin}/requests?selected=${id}`);
  const findBox = (body: string) => page.getByRole("tree", { name: body }).boundingBox();
  await page.getByText("answered").waitFor();
  const findBoxes = async () => [await findBox("Request body"), await findBox("Response body")];
  // The page may still move while other parts of it load.
  await vi.waitUntil(
    async () => new Set((await findBoxes()).map((box) => box?.y)).size === 1,
    WAIT_OPTIONS,
  );
  const [sent, received] = await findBoxes();
  expect(sent!.x + sent!.width).toBeLessThan(received!.x);
  expect(sent!.y + sent!.height).toBeLessThan(900);
  const path = page.getByTitle("/small").first();
  expect(await path.evaluate((element) => element.scrollWidth <= element.clientWidth)).toBe(true);
});

test("a body has a raw and a hex view, which the URL names, and can be downloaded", async () => {
  const id = await capture("/views", answer("application/json", '{"a":1}'));
  const response = await open(id);
  await response.getByRole("tab", { name: "Hex" }).click();
  await response.getByText("7b 22 61 22").waitFor();
  expect(new URL(page.url()).search).toBe("?response_view=hex");
  await page.reload();
  await response.getByText("7b 22 61 22").waitFor();
  await response.getByRole("tab", { name: "Raw" }).click();
  await response.getByRole("tabpanel", { name: "Raw" }).getByText('{"a":1}').waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    clickButton(page, "Download the response body"),
  ]);
  expect(download.suggestedFilename()).toBe(`${id}-response.json`);
  expect(await readFile(await download.path(), "utf8")).toBe('{"a":1}');
});

test("a body of 512 KiB shows its first rows only", async () => {
  const items = Array.from({ length: 7_000 }, (_, n) => ({ n, text: "x".repeat(50) }));
  const id = await capture("/large", answer("application/json", JSON.stringify(items)));
  const response = await open(id);
  await response.getByText("[7000 items]").waitFor();
  await clickButton(page, "Open all");
  const rows = response.getByRole("treeitem");
  await response.getByText("0:").first().waitFor();
  expect(await rows.count()).toBeLessThan(100);
  await response.getByRole("tree").focus();
  await page.keyboard.press("End");
  await response.getByText("$[6999].text").waitFor();
});

test("of a few bytes that decompress to many, only the beginning is decompressed and searched", async () => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, "bomb "));
  const id = await capture("/gzip-bomb", answer("application/json", bomb, "gzip"));
  const response = await open(id);
  await response.getByText("It is longer: decompression was cut at").waitFor();
  await response.getByText("bomb bomb").first().waitFor();
  await page.goto(`${pages.origin}/requests?filter=path%3A%2Fgzip-bomb&body=bomb+bomb`);
  await page.getByText("1 found in 1 of the newest 1 requests").waitFor();
});

test("a body that is missing says why", async () => {
  const { tunnelId } = captured.agent;
  const cut = await capture("/cut", answer("text/plain", "x".repeat(600_000)));
  const response = await open(cut);
  await response.getByText("Cut after 524 kB: the whole body has 600 kB.").waitFor();
  await captured.owner.put(`/tunnels/${tunnelId}/inspector`, { bodies: false });
  const off = await capture("/off", answer("text/plain", "not stored"));
  await captured.owner.put(`/tunnels/${tunnelId}/inspector`, {});
  await show(off);
  await response.getByText("bodies were not captured for this tunnel").waitFor();
  const link = response.getByRole("link", { name: "Capture settings" });
  expect(await link.getAttribute("href")).toBe(`/tunnels/${tunnelId}?tab=capturing`);
  await show("019a0000-0000-7000-8000-000000000001");
  await page.getByRole("heading", { name: "This request is not stored" }).waitFor();
  await page.getByRole("link", { name: "All requests" }).click();
  await page.waitForURL("**/requests");
});
/** A PNG file that claims to have other dimensions. */
function withSize(png: Buffer, pixels: number): Buffer {
  const copy = Buffer.from(png);
  copy.writeUInt32BE(pixels, 16);
  copy.writeUInt32BE(pixels, 20);
  return copy;
}
