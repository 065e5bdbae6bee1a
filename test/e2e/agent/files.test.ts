/** Files on disk as the local server: `underpass http ./public`. */
import { once } from "node:events";
import { mkdir, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findTarget, parseFilePath } from "../../../agent/files/files-target.ts";
import {
  EXAMINED_ENTRIES_MAX,
  LISTED_ENTRIES_MAX,
  listEntries,
  parsePath,
} from "../../../agent/files/directory.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { mintToken } from "../../harness/server/api.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { findHeader } from "../../harness/tunnel/raw-http.ts";

let stack: Stack;
let outside: string;
let site: string;

beforeAll(async () => {
  [stack, outside] = await Promise.all([startStack(), createTemporaryDir()]);
  site = join(outside, "site");
  await mkdir(join(site, "empty"), { recursive: true });
  await mkdir(join(site, "<b>"));
  await writeFile(join(outside, "secret.txt"), "secret");
  await writeFile(join(site, "index.html"), "<h1>home</h1>");
  await writeFile(join(site, "data.json"), "{}");
  await writeFile(join(site, "numbers.txt"), "0123456789");
  await writeFile(join(site, ".env"), "secret");
  await writeFile(join(site, "<b>", 'a"&.txt'), "quoted");
  await symlink(join(outside, "secret.txt"), join(site, "linked.txt"));
  await symlink(join(site, ".env"), join(site, "hidden.txt"));
  await symlink(outside, join(site, "<b>", "up"));
  await symlink(join(outside, "secret.txt"), join(site, "empty", "index.html"));
  await stack.expose({ origin: site, subdomain: "files" });
  await stack.expose({ origin: site, subdomain: "listing", directoryListing: true });
});
afterAll(async () => {
  await stack.stop();
  await rm(outside, { recursive: true });
});

const get = (path: string, headers = "", method = "GET") =>
  stack.visit("files", path, headers, method);

describe("a visitor of a shared directory gets", () => {
  test.each([
    ["/", "text/html; charset=utf-8", "<h1>home</h1>"],
    ["/data.json?v=1", "application/json; charset=utf-8", "{}"],
    ["/numbers.txt", "text/plain; charset=utf-8", "0123456789"],
    ["/%3Cb%3E/a%22%26.txt", "text/plain; charset=utf-8", "quoted"],
  ])("%s with its type", async (path, type, text) => {
    const { status, headers, body } = await get(path);
    expect([status, findHeader(headers, "content-type"), body.toString()]).toEqual([
      200,
      type,
      text,
    ]);
    expect(findHeader(headers, "x-content-type-options")).toBe("nosniff");
  });

  test("a range, and 416 beyond the end", async () => {
    const part = await get("/numbers.txt", "Range: bytes=2-4\r\n");
    expect([part.status, part.body.toString()]).toEqual([206, "234"]);
    expect(findHeader(part.headers, "content-range")).toBe("bytes 2-4/10");
    const last = await get("/numbers.txt", "Range: bytes=-20\r\n");
    expect([last.status, last.body.toString()]).toEqual([206, "0123456789"]);
    const beyond = await get("/numbers.txt", "Range: bytes=20-\r\n");
    expect([beyond.status, findHeader(beyond.headers, "content-range")]).toEqual([
      416,
      "bytes */10",
    ]);
  });

  test("the end of a download when the file becomes shorter meanwhile", async () => {
    const file = join(site, "large.bin");
    await writeFile(file, "");
    await truncate(file, 64 * 2 ** 20);
    const asked = request({
      ...{ host: "127.0.0.1", port: stack.server.port, path: "/large.bin" },
      headers: { host: `files.localhost:${stack.server.port}` },
    }).end();
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    expect(response.headers["content-length"]).toBe(String(64 * 2 ** 20));
    // Nothing is read until now, so the agent has not read all of the file.
    await truncate(file, 1);
    await expect(buffer(response)).rejects.toThrow("aborted");
  });

  test("304 for what it has already, by ETag and by date", async () => {
    const { headers } = await get("/numbers.txt");
    const etag = findHeader(headers, "etag")!;
    const date = findHeader(headers, "last-modified")!;
    expect((await get("/numbers.txt", `If-None-Match: ${etag}\r\n`)).status).toBe(304);
    expect((await get("/numbers.txt", `If-Modified-Since: ${date}\r\n`)).status).toBe(304);
  });

  test("only GET and HEAD", async () => {
    const head = await get("/numbers.txt", "", "HEAD");
    expect([head.status, head.body.length]).toEqual([200, 0]);
    expect(findHeader(head.headers, "content-length")).toBe("10");
    const posted = await get("/numbers.txt", "", "DELETE");
    expect([posted.status, findHeader(posted.headers, "allow")]).toEqual([405, "GET, HEAD"]);
  });

  test.each(["2-4", "-20", "20-"])("HEAD as without its range (%s)", async (range) => {
    const head = await get("/numbers.txt", `Range: bytes=${range}\r\n`, "HEAD");
    expect([head.status, findHeader(head.headers, "content-length")]).toEqual([200, "10"]);
    expect(findHeader(head.headers, "content-range")).toBeUndefined();
  });

  test("the slash of a directory, on the same host", async () => {
    const { status, headers } = await get("//%3Cb%3E?q=1");
    expect([status, findHeader(headers, "location")]).toEqual([301, "./%3Cb%3E/?q=1"]);
  });

  test("an answer to the handshake of a WebSocket, which is refused", async () => {
    const lines = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
    const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    expect((await get("/none", lines + key)).status).toBe(404);
  });

  test.each([
    ["a missing file", "/none.txt"],
    ["a file with a slash", "/numbers.txt/"],
    ["a parent", "/%2e%2e/secret.txt"],
    ["an encoded slash", "/..%2fsecret.txt"],
    ["an encoded backslash", "/..%5csecret.txt"],
    ["a path encoded twice", "/%252e%252e/secret.txt"],
    ["NUL", "/numbers.txt%00.html"],
    ["an invalid encoding", "/%ff%"],
    ["a hidden file", "/.env"],
    ["an encoded hidden file", "/%2eenv"],
    ["a link that leads out", "/linked.txt"],
    ["a link to a hidden file", "/hidden.txt"],
    ["a file behind a link that leads out", "/%3Cb%3E/up/secret.txt"],
  ])("404 for %s", async (_, path) => {
    const { status, body } = await get(path);
    expect([status, body.toString()]).toEqual([404, "This file does not exist.\n"]);
  });

  test.each([
    ["without index.html", "/%3Cb%3E/"],
    ["whose index.html leads out", "/empty/"],
  ])("404 for a directory %s, with what its owner can do", async (_, path) => {
    const { status, body } = await get(path);
    expect([status, body.toString()]).toEqual([
      404,
      "This directory has no index.html. With --directory-listing, the agent shows its files.\n",
    ]);
  });

  test("with --directory-listing, the names of the files it may have", async () => {
    const { status, headers, body } = await stack.visit("listing", "/%3Cb%3E/");
    const page = body.toString();
    expect([status, findHeader(headers, "content-security-policy")]).toEqual([
      200,
      "default-src 'none'",
    ]);
    expect(page).toContain('<a href="./a%22%26.txt">a&quot;&amp;.txt</a>');
    expect(page).toContain("<h1>/&lt;b&gt;/</h1>");
    expect(page).not.toContain("up");
    expect((await stack.visit("listing", "/")).body.toString()).toBe("<h1>home</h1>");
  });
});

test("a listing says that it is cut only if the directory has more entries", async () => {
  const directory = join(site, "many");
  await mkdir(directory);
  const write = (name: string | number) => writeFile(join(directory, `${name}.txt`), "");
  await Promise.all(Array.from({ length: LISTED_ENTRIES_MAX }, (_, index) => write(index)));
  await write(".hidden");
  const list = async () => (await stack.visit("listing", "/many/")).body.toString();
  expect(await list()).not.toContain("entries are shown");
  await write("one-more");
  const page = await list();
  expect(page).toContain(`Only ${LISTED_ENTRIES_MAX} entries are shown.`);
  expect(page.match(/<li>/g)).toHaveLength(1 + LISTED_ENTRIES_MAX);
  // It ends with the visitor.
  let asked = 0;
  const listing = await listEntries(site, directory, () => (asked += 1) < 3);
  expect([asked, listing.names.length < 3]).toEqual([3, true]);
});

test("a listing is made of a bounded number of entries, also when none of them can be shown", async () => {
  const directory = join(site, "hidden-entries");
  await mkdir(directory);
  const link = (name: number) => symlink("nowhere", join(directory, `.${name}`));
  await Promise.all(Array.from({ length: EXAMINED_ENTRIES_MAX }, (_, index) => link(index)));
  const list = async () => (await stack.visit("listing", "/hidden-entries/")).body.toString();
  expect(await list()).toContain("This directory is empty.");
  await link(EXAMINED_ENTRIES_MAX);
  expect(await list()).toContain("Only 0 entries are shown.");
});

test("underpass http shares a directory and a file, by path and by URL", async () => {
  const token = Buffer.from((await mintToken(stack.owner)).wireBytes, "base64");
  const share = (target: string, name: string, ...more: string[]) =>
    runAgent(
      ["http", target, "--server", stack.server.url, "--token-file", "TOKEN", "--json"].concat(
        ["--subdomain", name],
        more,
      ),
      { token },
    );
  await using directory = await share(join(site, "<b>"), "shared-dir", "--directory-listing");
  await using file = await share(pathToFileURL(join(site, "numbers.txt")).href, "shared-file");
  expect(await directory.event("ready")).toMatchObject({ local: join(site, "<b>") });
  await file.event("ready");
  await using bare = await share(join(site, "<b>"), "shared-bare");
  const { message } = await bare.event("notice");
  expect(message).toMatch(/<b> has no index\.html.*--directory-listing/);
  expect(directory.stdout + file.stdout).not.toContain("notice");
  expect((await stack.visit("shared-dir")).body.toString()).toContain("a&quot;&amp;.txt");
  expect((await stack.visit("shared-file")).body.toString()).toBe("0123456789");
  expect((await stack.visit("shared-file", "/numbers.txt")).status).toBe(200);
  expect((await stack.visit("shared-file", "/data.json")).status).toBe(404);
});

test.each<[string, { directoryListing?: boolean }, string]>([
  ["", {}, "the local port is empty"],
  [" ", {}, "the local port is empty"],
  ["file:", {}, "the local port is empty"],
  ["file://", {}, "the local port is empty"],
  ["./none", {}, "there is no file or directory ./none"],
  ["file:///none", {}, "there is no file or directory"],
  ["C:\\site\\none", {}, "there is no file or directory"],
  ["a/b", {}, "is not a port, host:port, http(s) URL, unix:path, file or directory"],
  ["tcp://localhost:5432", {}, "use `underpass tcp 5432`, or protocol: tcp"],
  ["tcp://db.test:5432", {}, "use `underpass tcp db.test:5432`"],
  ["ftp://localhost", {}, "has the scheme ftp; use http, https or file"],
  ["3000", { directoryListing: true }, "--directory-listing needs a directory"],
])("%s %j is bad usage", (text, options, message) => {
  expect(() => findTarget(text, options)).toThrow(message);
});

test.each([
  ["file:./site", "./site"],
  ["file:../my site", "../my site"],
  ["file:site", "site"],
  ["file:///srv/my%20site", "/srv/my site"],
])("%s is the path %s", (text, path) => {
  expect(parseFilePath(text, false)).toBe(path);
});

test("paths of Windows: drives, and names that lead elsewhere", () => {
  expect(parseFilePath("file:///C:/my%20site", true)).toBe(String.raw`C:\my site`);
  expect(parsePath("/a/C:", true)).toBeNull();
  expect(parsePath("/file.txt::$DATA", true)).toBeNull();
  expect(parsePath("/a%5c..%5cb", true)).toBeNull();
  expect(parsePath("/a/b.txt", true)).toEqual(["a", "b.txt"]);
});
