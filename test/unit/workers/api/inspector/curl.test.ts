/** Runs the commands in the installed shells and compares the received request with the captured one. */
import { execFile } from "node:child_process";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  CURL_ARGUMENT_MAX_BYTES,
  formatCurlCommand,
} from "../../../../../workers/api/inspector/curl.ts";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import { buildCapture } from "../../../../harness/tunnel/capture.ts";
import {
  startRawOrigin,
  type RawOrigin,
  type OriginRequest,
} from "../../../../harness/tunnel/origin.ts";
import { createRandom } from "../../../../harness/random.ts";
import { createTemporaryDir } from "../../../../harness/directories.ts";

const run = promisify(execFile);
const SHELLS = ["sh", "bash"];

let origin: RawOrigin;
let dir: string;
let cwd: string;
beforeAll(async () => {
  origin = await startRawOrigin();
  dir = await createTemporaryDir();
});
beforeEach(async () => {
  cwd = join(dir, crypto.randomUUID());
  await mkdir(cwd);
});
afterAll(async () => {
  await origin.stop();
  await rm(dir, { recursive: true, force: true });
});

/** @returns the requests that were received from each shell. */
async function runInShells(command: string): Promise<OriginRequest[]> {
  const arrived: OriginRequest[] = [];
  for (const shell of SHELLS) {
    origin.requests.length = 0;
    const env = { PATH: process.env.PATH, HOME: cwd };
    const silent = command.replace("curl ", "curl --silent --show-error --max-time 60 ");
    await writeFile(join(dir, "command"), silent);
    await run(shell, [join(dir, "command")], { cwd, env, encoding: "buffer" });
    expect(origin.requests).toHaveLength(1);
    arrived.push(origin.requests[0]!);
  }
  expect(await readdir(cwd)).toEqual([]);
  return arrived;
}

const NOT_CAPTURED = ["host", "content-length"];

/** The request that must be received, byte for byte. */
async function expectSame(event: CaptureDetail): Promise<void> {
  for (const received of await runInShells(
    formatCurlCommand(event, `http://127.0.0.1:${origin.port}`),
  )) {
    const headers = received.headers.map(([name, value]) => [
      name.toLowerCase(),
      Buffer.from(value, "latin1").toString(),
    ]);
    expect({
      method: received.method,
      target: Buffer.from(received.target, "latin1").toString(),
      headers: Object.fromEntries(headers.filter(([name]) => !NOT_CAPTURED.includes(name))),
      body: received.body.toString("base64"),
    }).toEqual({
      method: event.method,
      target: event.query === null ? event.path : `${event.path}?${event.query}`,
      headers: event.request_headers,
      body: event.request_body,
    });
  }
}

describe("the received request is the captured one:", () => {
  test.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "QUERY", "-X", "purge"])(
    "the method %s",
    async (method) => expectSame(buildCapture({ method, path: "/a", query: "b=c" })),
  );

  test.each([
    ["/", ""],
    ["/", "?"],
    ["/a/../b/./c", null],
    ["//elsewhere.example/x", null],
    ["/@elsewhere.example", "a=[1-3]&b={x,y}"],
    ["/%2f%00%zz", "q=%27%22"],
    ["/a#b", "c#d"],
    ["/it's", `"quoted"&'`],
    ["/$(touch pwned)", "`touch pwned`;touch pwned|touch pwned&&touch pwned"],
    ["/${HOME}", "$HOME\\$HOME\\\\"],
    ["/back\\slash", "!history!!"],
    ["*", null],
    ["http://elsewhere.example/absolute", "x"],
    ["-o", null],
    ["@file", null],
    [`/${"long".repeat(1_500)}`, null],
  ])("the target %.50s and %s", async (path, query) => {
    // A space ends a target, so no target contains one.
    await expectSame(
      buildCapture({
        path: path.replaceAll(" ", "${IFS}"),
        query: query?.replaceAll(" ", "${IFS}") ?? null,
      }),
    );
  });

  test.each([
    ["nothing", {}],
    ["headers that curl also sends", { accept: "text/html", "user-agent": "Mozilla/5.0 (X11)" }],
    ["an empty value", { "x-empty": "", accept: "" }],
    ["quotes", { "x-q": `'"\`'' \\' $'\\n'`, "x-r": "''" }],
    ["substitutions", { "x-s": "$(touch pwned)`touch pwned`${PATH}!!" }],
    ["files", { "x-f": "@/etc/passwd", "x-g": "<file" }],
    ["options", { "x-o": "--output pwned -o pwned", "-o": "x" }],
    ["cookies", { cookie: "a=b; c=d=e" }],
    ["letters of any script", { "x-u": "žluťoučký 😀 ﷺ" }],
    ["what a terminal acts on", { "x-t": "a\u001b[201~b\u009b31mc\td\u007fe" }],
    ["what turns the direction of writing", { "x-b": "\u202eevil\u2066" }],
    ["packed answers", { "accept-encoding": "gzip, deflate" }],
  ])("header lines with %s", async (_name, headers) =>
    expectSame(buildCapture({ method: "POST", request_headers: headers })),
  );

  const sent = (body: Uint8Array | string, headers: Record<string, string> = {}) =>
    buildCapture({ method: "POST", request_headers: headers }, { sent: body });
  test.each([
    ["text", "a=b&c=d"],
    ["a file's name", "@/etc/passwd"],
    ["an option", "--output pwned"],
    ["quotes and substitutions", `it's "$(touch pwned)" \`touch pwned\` \\ '\\''`],
    ["lines", "one\ntwo\r\nthree\n\n"],
    ["nothing but line ends", "\n\r\n\n"],
    ["the word that ends it", "UNDERPASS_BODY\nUNDERPASS_BODY\n"],
    ["indentation", '{\n\t"a": 1\n}'],
    ["what a terminal acts on", "\u001b[201~\ntouch pwned\n\u0003\u0004"],
    ["nothing but such", "\t".repeat(5_000)],
    ["a mark at the start", "\ufeffx"],
    ["NUL", "a\0b"],
    ["zeros", new Uint8Array(1_000)],
    ["no UTF-8", Buffer.from([0xff, 0xfe, 0x80, 0x0a])],
    ["half a pair", Buffer.from([0xed, 0xa0, 0x80])],
  ])("a body of %s", async (_name, body) => {
    await expectSame(sent(body, { "content-type": "text/plain", accept: "*/*" }));
    await expectSame(sent(body));
  });

  test("bodies of any size", { timeout: 120_000 }, async () => {
    const random = createRandom(3);
    const most = CURL_ARGUMENT_MAX_BYTES;
    for (const body of [
      "x".repeat(most),
      "'".repeat(most),
      "x".repeat(most + 1),
      random.bytes(512 * 1024),
    ]) {
      await expectSame(sent(body));
    }
  });

  test("any characters anywhere", { timeout: 120_000 }, async () => {
    const random = createRandom(11);
    const LETTERS = [..."ab'\"\\$`!{}[]()<>|&;*?~#@%-= \t\n\r\u001b\u202eé😀"];
    const text = (without: string, length: number) =>
      Array.from({ length: random.below(length) }, () =>
        random.pick(LETTERS.filter((letter) => !without.includes(letter))),
      ).join("");
    for (let i = 0; i < 15; i++) {
      const path = `/${text("? \t\n\r\u001b\u202eé😀", 30)}`;
      const query = text(" \t\n\r\u001b\u202eé😀", 30);
      // Whitespace around a header's value is removed.
      const headers = { "x-value": `(${text("\n\r", 40)})` };
      await expectSame({ ...sent(text("", 80), headers), path, query });
    }
  });
});

describe("the command", () => {
  const ORIGIN = "https://shop.example.com";

  test("reads like one written by hand", () => {
    const event = buildCapture(
      {
        method: "PUT",
        path: "/orders/7",
        query: "dry=1",
        request_headers: {
          host: "shop.example.com",
          "content-length": "15",
          "content-type": "application/json",
          accept: "*/*",
          "user-agent": "curl/8.0",
          authorization: "[redacted]",
        },
      },
      { sent: '{"it\'s": "new"}' },
    );
    expect(formatCurlCommand(event, ORIGIN)).toBe(
      [
        "curl \\",
        "  --globoff \\",
        "  --path-as-is \\",
        "  --request 'PUT' \\",
        "  --header 'content-type: application/json' \\",
        "  --header 'accept: */*' \\",
        "  --header 'user-agent: curl/8.0' \\",
        "  --header 'authorization: [redacted]' \\",
        `  --data-raw '{"it'\\''s": "new"}' \\`,
        "  --url 'https://shop.example.com/orders/7?dry=1'",
        "",
      ].join("\n"),
    );
  });

  test("has no headers of the connection or of the tunnel itself", () => {
    const request_headers = Object.fromEntries(
      [
        "host",
        "connection",
        "transfer-encoding",
        "te",
        "upgrade",
        "x-forwarded-for",
        "x-forwarded-proto",
        "content-length",
        "sec-websocket-key",
        "bad name",
        "evil\nx",
      ].map((name) => [name, "x-value"]),
    );
    expect(formatCurlCommand(buildCapture({ request_headers }), ORIGIN)).not.toContain("x-value");
  });

  test("opens a WebSocket like a client", async () => {
    const event = buildCapture({
      kind: "websocket",
      path: "/live",
      status: 101,
      request_headers: { "sec-websocket-protocol": "chat" },
    });
    const command = formatCurlCommand(event, `http://127.0.0.1:${origin.port}`);
    for (const { target, headers } of await runInShells(command)) {
      const lines = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
      expect([target, lines]).toEqual([
        "/live",
        expect.objectContaining({
          connection: "Upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": expect.stringMatching(/^[\w+/]{22}==$/),
          "sec-websocket-protocol": "chat",
        }),
      ]);
    }
  });
});
