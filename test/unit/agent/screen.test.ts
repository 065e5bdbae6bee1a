/** What the screen shows for a state, in terminals of all sizes; and which texts are safe to print. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  renderHttpScreen,
  type HttpScreenState,
  type TunnelView,
} from "../../../agent/screen/http-lines.ts";
import { parseKeys } from "../../../agent/screen/keys.ts";
import { getLineText } from "../../../agent/screen/line.ts";
import { RequestList, REQUESTS_MAX } from "../../../agent/screen/request-list.ts";
import {
  cutText,
  escapeControls,
  formatPath,
  getWidth,
  wrapText,
} from "../../../agent/screen/text.ts";
import type { RequestKind, RequestReport } from "../../../agent/library/types.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");

const report = (path: string, kind: RequestKind = "request"): RequestReport => ({
  ...{ id: 1, kind, method: "GET", path, status: 200, durationMs: 12.3, problem: undefined },
  ...{ bytesIn: 0, bytesOut: 1536, messages: 0 },
});
const tunnel = (changes: Partial<TunnelView> = {}): TunnelView => ({
  name: "shop",
  local: "http://localhost:3000",
  url: "https://shop.example",
  connection: "online",
  latencyMs: 12.4,
  reconnects: 0,
  warnings: [],
  ...changes,
});
const state = (changes: Partial<HttpScreenState> = {}): HttpScreenState => ({
  server: "example",
  tunnels: [tunnel()],
  notices: [],
  inspectorUrl: undefined,
  requests: new RequestList(),
  isTypingFilter: false,
  result: "",
  overlay: null,
  hasKeys: true,
  nowMs: NOW_MS,
  ...changes,
});
const render = (shown: HttpScreenState, width = 80, height = 24): string[] =>
  renderHttpScreen(shown, width, height).map((line) => getLineText(line).trimEnd());

describe("the screen", () => {
  test("shows the quality of the connection, the inspector and the keys", () => {
    const rows = render(
      state({ tunnels: [tunnel({ reconnects: 2 })], inspectorUrl: "http://127.0.0.1:4040" }),
    );
    expect(rows).toContain("State       online, 12 ms, 2 reconnects");
    expect(rows).toContain("Inspector   http://127.0.0.1:4040");
    expect(rows.at(-1)).toContain("o inspector");
  });

  test("shows several tunnels, each with its state, and names them at their requests", () => {
    const requests = new RequestList();
    requests.add("docs", report("/a"), NOW_MS);
    const tunnels = [tunnel(), tunnel({ name: "docs", connection: "stopped", warnings: ["gone"] })];
    const text = render(state({ tunnels, requests }), 100).join("\n");
    expect(text).toContain("shop  online, 12 ms  https://shop.example -> http://localhost:3000\n");
    expect(text).toContain("docs  stopped  https://shop.example");
    expect(text).toContain("docs: gone");
    expect(text).toMatch(/docs 200 GET +12 ms +1\.5 kB {2}\/a\n/);
  });

  test("wraps a message and never cuts it", () => {
    const notice = "the local server refuses the public host name; its own is used from now on";
    for (const width of [20, 40, 80]) {
      const text = render(state({ notices: [notice] }), width, 40)
        .join(" ")
        .replace("Note", "");
      expect(text.replace(/ +/g, " ")).toContain(notice);
    }
  });

  test("shows the age of an open stream, and how long a closed one was open", () => {
    const requests = new RequestList();
    const stream = report("/events", "events");
    requests.openStream("", stream, NOW_MS - 125_000);
    const row = (nowMs: number) => render(state({ requests, nowMs }))[7];
    expect(row(NOW_MS)).toMatch(/2 min +1\.5 kB {2}\/events {2}event stream open$/);
    requests.closeStream(stream, NOW_MS);
    expect(row(NOW_MS + 900_000)).toMatch(/2 min +1\.5 kB {2}\/events {2}event stream closed$/);
  });

  test("fits any size, whatever it shows", () => {
    const texts = fc.string({ unit: "grapheme", maxLength: 60 });
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 120 }),
        fc.integer({ min: 1, max: 40 }),
        fc.array(texts, { maxLength: 30 }),
        texts,
        (width, height, paths, notice) => {
          const requests = new RequestList();
          for (const path of paths) {
            requests.add("", report(Buffer.from(path).toString("latin1")), NOW_MS);
          }
          requests.moveSelection(1);
          const shown = state({ requests, notices: [escapeControls(notice)] });
          const lines = renderHttpScreen(shown, width, height);
          expect(lines.length).toBeLessThanOrEqual(Math.max(1, height));
          for (const line of lines) {
            expect(getWidth(getLineText(line))).toBeLessThanOrEqual(width);
            expect(getLineText(line)).not.toMatch(/[\p{Cc}\u202a-\u202e]/u);
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("the list of requests", () => {
  test("remembers the newest 500, and streams that are still open", () => {
    const requests = new RequestList();
    const stream = report("/socket", "websocket");
    requests.openStream("", stream, NOW_MS);
    for (let at = 0; at < 2 * REQUESTS_MAX; at += 1) requests.add("", report(`/${at}`), NOW_MS);
    const paths = requests.list().map((entry) => entry.report.path);
    expect(paths).toHaveLength(REQUESTS_MAX);
    expect([paths[0], paths.at(-1)]).toEqual(["/999", "/socket"]);
    expect(requests.count).toBe(2 * REQUESTS_MAX + 1);
  });

  test("has a WebSocket once, although its handshake is reported too", () => {
    const requests = new RequestList();
    const socket = report("/socket", "websocket");
    requests.add("", socket, NOW_MS);
    requests.openStream("", socket, NOW_MS);
    expect([requests.count, requests.openStreams]).toEqual([1, 1]);
  });
});

test.each([
  ["abc", 3],
  ["日本", 4],
  ["e\u0301", 1],
  ["👍", 2],
  ["ｆｕｌｌ", 8],
])("%s takes %i cells", (text, width) => {
  expect(getWidth(text)).toBe(width);
});

test("a text is cut between characters", () => {
  expect(cutText("日本語", 5)).toBe("日本…");
  expect(cutText("日本語", 4)).toBe("日…");
  expect(cutText("ab👩‍👩‍👧", 4)).toBe("ab…");
  expect(wrapText("a bc averyverylongword d", 8)).toEqual(["a bc", "averyver", "ylongwor", "d d"]);
});

test.each([
  ["/%e6%97%a5%E6%9C%AC", "/日本"],
  ["/%1b[31m%0a%9b2J%20%2F", "/%1b[31m%0a%9b2J%20%2F"],
  ["/%e2%80%aegpj.exe", "/%e2%80%aegpj.exe"],
  ["/\u001b]0;title\u0007\u009b2J", "/\\x1b]0;title\\x07\\x9b2J"],
  [Buffer.from("/é\u202e").toString("latin1"), "/é\\u{202e}"],
])("the path %j is shown as %s", (path, shown) => {
  expect(formatPath(path)).toBe(shown);
});

test("keys are parsed from characters and escape sequences", () => {
  expect(parseKeys("jé\u001b[A\u001bOB\r\u007f\u0003")).toEqual([
    ...["j", "é", "up", "down", "enter", "backspace", "ctrl-c"],
  ]);
  expect(parseKeys("\u001b")).toEqual(["escape"]);
  expect(parseKeys("\u001b[200~\u001b[1;5C\u0001")).toEqual([]);
});
