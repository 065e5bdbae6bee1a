/** Runs the commands in the installed shells and compares the received request with the captured one. */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  CURL_ARGUMENT_MAX_BYTES,
  formatCurlCommand,
} from "../../../../../workers/api/inspector/curl.ts";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import { buildCapture } from "../../../../harness/tunnel/capture.ts";
import { startRawOrigin, type OriginRequest } from "../../../../harness/tunnel/origin.ts";
import { createRandom } from "../../../../harness/random.ts";
import { createTemporaryDir } from "../../../../harness/directories.ts";

const run = promisify(execFile);
const SHELLS = ["sh", "bash"];

let dir: string;
beforeAll(async () => {
  dir = await createTemporaryDir();
});
afterAll(() => rm(dir, { recursive: true, force: true }));

interface Outcome {
  /** The exit code of each shell. */
  exitCodes: string[];
  received: OriginRequest[];
}

/** Runs the commands of several requests in each shell. @returns the outcome for each of them. */
async function runInShells(events: readonly CaptureDetail[]): Promise<Outcome[]> {
  const origins = await Promise.all(events.map(() => startRawOrigin()));
  const path = join(dir, crypto.randomUUID());
  const [script, codes, cwd] = [`${path}.sh`, `${path}.codes`, `${path}.cwd`];
  const lines = events.flatMap((event, at) => [
    formatCurlCommand(event, `http://127.0.0.1:${origins[at]!.port}`).replace(
      "curl ",
      "curl --silent --show-error --max-time 60 ",
    ),
    `echo $? >> ${codes}`,
  ]);
  await writeFile(script, lines.join("\n"));
  await mkdir(cwd);
  const env = { PATH: process.env.PATH, HOME: cwd };
  try {
    for (const shell of SHELLS) await run(shell, [script], { cwd, env, encoding: "buffer" });
  } finally {
    await Promise.all(origins.map((origin) => origin.stop()));
  }
  // No command has created a file.
  expect(await readdir(cwd)).toEqual([]);
  const exitCodes = (await readFile(codes, "utf8")).trim().split("\n");
  return origins.map(({ requests }, at) => ({
    exitCodes: SHELLS.map((_, n) => exitCodes[n * events.length + at]!),
    received: requests,
  }));
}

const NOT_CAPTURED = ["host", "content-length"];

/** One request from each shell, byte for byte the captured one. */
function expectSame(event: CaptureDetail, { exitCodes, received }: Outcome): void {
  expect(exitCodes).toEqual(SHELLS.map(() => "0"));
  expect(received).toHaveLength(SHELLS.length);
  for (const { method, target, headers, body } of received) {
    const lines = headers.map(([name, value]) => [
      name.toLowerCase(),
      Buffer.from(value, "latin1").toString(),
    ]);
    expect({
      method,
      target: Buffer.from(target, "latin1").toString(),
      headers: Object.fromEntries(lines.filter(([name]) => !NOT_CAPTURED.includes(name))),
      body: body.toString("base64"),
    }).toEqual({
      method: event.method,
      target: event.query === null ? event.path : `${event.path}?${event.query}`,
      headers: event.request_headers,
      body: event.request_body,
    });
  }
}

const METHODS = [
  "GET",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "HEAD",
  "QUERY",
  "-X",
  "purge",
];

const TARGETS: [string, string | null][] = [
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
];
/** A space ends a target, so no target contains one. */
const withoutSpaces = (text: string) => text.replaceAll(" ", "${IFS}");

const HEADERS: [string, Record<string, string>][] = [
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
];

const BODIES: [string, string | Uint8Array][] = [
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
];
const LARGE_BODIES: [string, string | Uint8Array][] = [
  ["the largest size of an argument", "x".repeat(CURL_ARGUMENT_MAX_BYTES)],
  ["quotes of that size", "'".repeat(CURL_ARGUMENT_MAX_BYTES)],
  ["one byte more", "x".repeat(CURL_ARGUMENT_MAX_BYTES + 1)],
  ["any bytes", createRandom(3).bytes(512 * 1024)],
];

const sent = (body: Uint8Array | string, headers: Record<string, string> = {}) =>
  buildCapture({ method: "POST", request_headers: headers }, { sent: body });

const CASES: [string, CaptureDetail][] = [
  ...METHODS.map((method): [string, CaptureDetail] => [
    `the method ${method}`,
    buildCapture({ method, path: "/a", query: "b=c" }),
  ]),
  ...TARGETS.map(([path, query]): [string, CaptureDetail] => [
    `the target ${path.slice(0, 50)} and ${query}`,
    buildCapture({ path: withoutSpaces(path), query: query && withoutSpaces(query) }),
  ]),
  ...HEADERS.map(([name, headers]): [string, CaptureDetail] => [
    `header lines with ${name}`,
    buildCapture({ method: "POST", request_headers: headers }),
  ]),
  ...[...BODIES, ...LARGE_BODIES].map(([name, body]): [string, CaptureDetail] => [
    `a body of ${name}`,
    sent(body),
  ]),
  ...BODIES.map(([name, body]): [string, CaptureDetail] => [
    `a body of ${name}, with its type`,
    sent(body, { "content-type": "text/plain", accept: "*/*" }),
  ]),
];

describe("the received request is the captured one:", () => {
  let outcomes: Outcome[];
  // One process of each shell for all commands.
  beforeAll(async () => {
    outcomes = await runInShells(CASES.map(([, event]) => event));
  });

  test.each(CASES.map(([name, event], at) => ({ name, event, at })))("$name", ({ event, at }) => {
    expectSame(event, outcomes[at]!);
  });

  test("any characters anywhere", async () => {
    const LETTERS = [..."ab'\"\\$`!{}[]()<>|&;*?~#@%-= \t\n\r\u001b\u202eé😀"];
    const text = (without: string, length: number) =>
      fc.string({
        unit: fc.constantFrom(...LETTERS.filter((letter) => !without.includes(letter))),
        maxLength: length - 1,
        size: "max",
      });
    const NOT_IN_TARGETS = " \t\n\r\u001b\u202eé😀";
    const request = fc.record({
      path: text(`?${NOT_IN_TARGETS}`, 30).map((path) => `/${path}`),
      query: text(NOT_IN_TARGETS, 30),
      // Whitespace around a header's value is removed.
      headers: text("\n\r", 40).map((value) => ({ "x-value": `(${value})` })),
      body: text("", 80),
    });
    await fc.assert(
      fc.asyncProperty(request, async ({ path, query, headers, body }) => {
        const event = { ...sent(body, headers), path, query };
        expectSame(event, (await runInShells([event]))[0]!);
      }),
      { seed: 11, numRuns: 15 },
    );
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
    const [outcome] = await runInShells([event]);
    expect(outcome!.received).toHaveLength(SHELLS.length);
    for (const { target, headers } of outcome!.received) {
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
