/** What the screen shows for a state, in terminals of all sizes. */
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { renderScreen, type ScreenState } from "../../../../agent/screen/render-screen.ts";
import type { TunnelView } from "../../../../agent/screen/tunnel-lines.ts";
import { LatencyHistory } from "../../../../agent/screen/latency-history.ts";
import { getLineText } from "../../../../agent/screen/line.ts";
import { RequestList, REQUESTS_MAX } from "../../../../agent/screen/request-list.ts";
import { TerminalScreen } from "../../../../agent/screen/terminal.ts";
import { getWidth } from "../../../../agent/screen/text.ts";
import { escapeControls } from "../../../../shared/text/escape-controls.ts";
import { createReport as report } from "../../../harness/agent/request-report.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");

const tunnel = (changes: Partial<TunnelView> = {}): TunnelView => ({
  name: "shop",
  local: "http://localhost:3000",
  url: "https://shop.example",
  connection: "online",
  latencyMs: 12.4,
  jitterMs: undefined,
  reconnects: 0,
  gates: undefined,
  refused: 0,
  expiresAt: undefined,
  warnings: [],
  ...changes,
});
const state = (changes: Partial<ScreenState> = {}): ScreenState => ({
  server: "example",
  account: "Acme, pro plan, token laptop",
  update: undefined,
  tunnels: [tunnel()],
  selectedTunnel: undefined,
  fileProblems: [],
  notices: [],
  inspectorUrl: undefined,
  requests: new RequestList(),
  countOpenAtStop: undefined,
  isTypingFilter: false,
  result: "",
  overlay: null,
  hasKeys: true,
  nowMs: NOW_MS,
  ...changes,
});
const render = (shown: ScreenState, width = 80, height = 24): string[] =>
  renderScreen(shown, width, height).map((line) => getLineText(line).trimEnd());

describe("the screen", () => {
  test("shows the quality of the connection, the account, the inspector and the keys", () => {
    const shown = tunnel({ reconnects: 2, jitterMs: 3.4 });
    const rows = render(state({ tunnels: [shown], inspectorUrl: "http://127.0.0.1:4040" }));
    expect(rows[0]).toBe("underpass");
    expect(rows).toContain("State       online, 12 ms ± 3 ms, 2 reconnects");
    expect(rows).toContain("Account     Acme, pro plan, token laptop");
    expect(rows).toContain("Inspector   http://127.0.0.1:4040");
    expect(rows.at(-1)).toContain("o inspector");
  });

  test("shows the whole command of an update, wrapped where the screen is narrow", () => {
    const update =
      "9.1.0 is available: npm install --global https://tunnels.example.com/underpass.tgz";
    const rows = render(state({ update }));
    const at = rows.findIndex((row) => row.startsWith("Update"));
    expect(rows.slice(at, at + 2).map((row) => row.slice(12))).toEqual([
      "9.1.0 is available: npm install --global",
      "https://tunnels.example.com/underpass.tgz",
    ]);
  });

  test("measures jitter as the mean difference of heartbeats in turn, once there are three", () => {
    const latency = new LatencyHistory();
    const jitters = [10, 14, 12, 12].map((ms) => {
      latency.add(ms);
      return latency.jitterMs;
    });
    expect(jitters).toEqual([undefined, undefined, 3, 2]);
    latency.clear();
    expect(latency.jitterMs).toBeUndefined();
  });

  test("shows several tunnels, each with its state, and names them at their requests", () => {
    const requests = new RequestList();
    requests.add("docs", report("/a"), NOW_MS);
    const tunnels = [tunnel(), tunnel({ name: "docs", connection: "stopped", warnings: ["gone"] })];
    const text = render(state({ tunnels, requests }), 100).join("\n");
    expect(text).toContain("shop  online, 12 ms  https://shop.example -> http://localhost:3000\n");
    expect(text).toContain("docs  stopped        https://shop.example");
    expect(text).toContain("docs: gone");
    expect(text).toMatch(/docs 200 GET +12 ms +1\.5 kB {2}\/a\n/);
  });

  test("shows a TCP tunnel with its connections, and those that have ended among the requests", () => {
    const requests = new RequestList();
    const measured = { durationMs: 5_400_000, bytesIn: 517, bytesOut: 20_480 };
    requests.addConnection("db", { address: "203.0.113.7", via: "relay", ...measured }, NOW_MS);
    const problem = "nothing is listening on localhost:5432";
    const failed = { address: "::1", via: "connect" as const, ...measured, problem };
    requests.addConnection("db", failed, NOW_MS);
    const database = tunnel({
      name: "db",
      url: "tcp://relay.example:20007",
      local: "localhost:5432",
      connections: { count: 3, open: 1 },
    });
    const tunnels = [tunnel(), database];
    const rows = render(state({ tunnels, selectedTunnel: database, requests }), 120);
    expect(rows).toContain(
      "> db    online, 12 ms  tcp://relay.example:20007 -> localhost:5432  3 connections, 1 open",
    );
    expect(rows).toContain("Requests    0");
    const listed = rows.filter((row) => row.includes(" tcp "));
    expect(listed[0]).toMatch(
      / db {3}tcp connect +1 h 30 m +21\.0 kB {2}::1 {2}nothing is listening/,
    );
    expect(listed[1]).toMatch(/ db {3}tcp +1 h 30 m +21\.0 kB {2}203\.0\.113\.7$/);
    const alone = render(state({ tunnels: [database], selectedTunnel: database, requests }));
    expect(alone).toContain("Connections 3, 1 open");
  });

  test("shows a private tunnel by its name, without a URL, and the command that connects to it", () => {
    const vault = tunnel({ name: "", url: undefined, privateName: "vault", local: "localhost:22" });
    const alone = renderScreen(state({ tunnels: [vault] }), 80, 24);
    const rows = alone.map((line) => getLineText(line).trimEnd());
    expect(rows[3]).toBe("Forwarding  vault (private) -> localhost:22");
    expect(rows[4]).toBe("Connect     underpass connect vault");
    expect(alone.flat().filter(({ link }) => link !== undefined)).toEqual([]);
    const tunnels = [1, 2, 3, 4, 5].map((at) => ({
      ...vault,
      name: `v${at}`,
      privateName: `v${at}`,
    }));
    expect(render(state({ tunnels: [tunnel(), ...tunnels] })).slice(3, 12)).toEqual([
      "  v1    online, 12 ms  v1 (private) -> localhost:22",
      "  v2    online, 12 ms  v2 (private) -> localhost:22",
      "  v3    online, 12 ms  v3 (private) -> localhost:22",
      "  v4    online, 12 ms  v4 (private) -> localhost:22",
      "  v5    online, 12 ms  v5 (private) -> localhost:22",
      "Connect     underpass connect v1",
      "            underpass connect v2",
      "            underpass connect v3",
      "            and 2 more private tunnels",
    ]);
  });

  test("has room for requests beside many tunnels, and always shows the selected one", () => {
    const tunnels = Array.from({ length: 40 }, (_, at) => tunnel({ name: `tunnel-${at}` }));
    for (const at of [0, 11, 39]) {
      for (const width of [120, 40]) {
        const rows = render(state({ tunnels, selectedTunnel: tunnels[at] }), width);
        expect(rows.find((row) => row.startsWith("> "))).toContain(`> tunnel-${at} `);
        expect(rows).toContainEqual(expect.stringMatching(/^ {2}and \d+ more tunnels; Tab/));
        expect(rows).toContainEqual(expect.stringMatching(/^(?:Requests +)?0$/));
      }
    }
  });

  test("shows why a changed file is not used, and that there are more problems than it shows", () => {
    const fileProblems = [1, 2, 3, 4, 5].map((line) => `underpass.yml:${line}:1: unknown key x`);
    const rows = render(state({ fileProblems }));
    expect(rows).toContain("File        underpass.yml:1:1: unknown key x");
    expect(rows).toContain("            underpass.yml:3:1: unknown key x");
    expect(rows).toContain("            and more problems");
    expect(rows).toContain("            the tunnels stay as they are");
  });

  test("has a label at each value on a narrow screen, and breaks an address that is too long", () => {
    const inspectorUrl = "http://127.0.0.1:4040";
    const requests = new RequestList();
    requests.add("shop", report("/a"), NOW_MS);
    const shown = state({ inspectorUrl, requests, tunnels: [tunnel({ refused: 12 })] });
    expect(render(shown, 40).slice(2, 10)).toEqual([
      "State online, 12 ms",
      "https://shop.example",
      "-> http://localhost:3000",
      "Server example",
      "Account Acme, pro plan, token laptop",
      "Inspector http://127.0.0.1:4040",
      "Requests 1",
      "Refused 12",
    ]);
    expect(render(shown, 20).slice(7, 12)).toEqual([
      "Account Acme, pro p…",
      "Inspector",
      "http://127.0.0.1:404",
      "0",
      "Requests 1",
    ]);
  });

  test("shows the gates of several tunnels by name, and how many more have some", () => {
    const gates = { tunnelId: "id", names: ["password"], ownNames: ["password" as const] };
    const tunnels = ["a", "b", "c", "d", "e"].map((name) => tunnel({ name, gates, refused: 2 }));
    const rows = render(state({ tunnels: [tunnel(), ...tunnels] }), 80);
    expect(rows).toContain("Visitors    a: with a password");
    expect(rows).toContain("            c: with a password");
    expect(rows).toContain("            and 2 more tunnels with gates");
    expect(rows).toContain("Refused     10");
  });

  test("shows when tunnels expire, those first that expire first", () => {
    const inSeconds = (seconds: number) => new Date(NOW_MS + seconds * 1_000).toISOString();
    const only = tunnel({ expiresAt: inSeconds(19) });
    expect(render(state({ tunnels: [only] }))).toContain("Expires     in 19 s");
    const tunnels = [7_200, 300, 60, 19].map((seconds) =>
      tunnel({ name: `t${seconds}`, expiresAt: inSeconds(seconds) }),
    );
    expect(render(state({ tunnels: [tunnel(), ...tunnels] }))).toContain(
      "Expires     t19 in 19 s, t60 in 60 s, t300 in 5 min, 1 more later",
    );
  });

  test("leaves out how to remove a gate when there is no room, and never the gate", () => {
    const gates = { tunnelId: "id", names: ["password"], ownNames: [] };
    const shown = state({ tunnels: [tunnel({ name: "", gates })] });
    expect(render(shown, 80, 24).join("\n")).toContain("--basic-auth=off");
    const low = render(shown, 80, 9).join("\n");
    expect(low).toContain("Visitors    with a password");
    expect(low).not.toContain("--basic-auth");
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

  test("shows all of the problem and the path of the selected request, whose row cuts them", () => {
    const problem = "nothing is listening on http://localhost:3000; start the local server there";
    const path = `/${"long-path/".repeat(6)}end`;
    const requests = new RequestList();
    requests.add("", report("/older"), NOW_MS);
    requests.add("", { ...report(path), status: 502, problem }, NOW_MS);
    for (let at = 0; at < 30; at += 1) requests.add("", report("/newer"), NOW_MS);
    for (const [width, height] of [
      [80, 24],
      [40, 12],
    ] as const) {
      requests.clearSelection();
      expect(render(state({ requests }), width, height).join("\n")).not.toContain("long");
      for (let at = 0; at <= 30; at += 1) requests.moveSelection(1);
      const rows = render(state({ requests }), width, height);
      const at = rows.findIndex((row) => row.startsWith(">"));
      const below = rows.slice(at + 1, -1).join("\n");
      expect(below.replace(/\n? +/g, " ")).toContain(problem);
      expect(below.replace(/\n {2}/g, "")).toContain(path);
    }
    const low = render(state({ requests }), 40, 8);
    expect(low.at(-2)).toMatch(/…$/);
    requests.moveSelection(1);
    expect(render(state({ requests })).at(-2)).toMatch(/^> .*\/older$/);
  });

  test("shows the end of a filter that is longer than the row while it is typed", () => {
    const requests = new RequestList();
    requests.filter = "status:5xx path:/orders duration:>1s";
    const footer = render(state({ requests, isTypingFilter: true }), 30).at(-1);
    expect(footer).toBe("…xx path:/orders duration:>1s_");
  });

  test("shows the age of an open stream, and how long a closed one was open", () => {
    const requests = new RequestList();
    const stream = report("/events", "events");
    requests.openStream("", stream, NOW_MS - 125_000);
    const row = (nowMs: number) => render(state({ requests, nowMs }))[8];
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
          const lines = renderScreen(shown, width, height);
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

describe("a filter", () => {
  const requests = new RequestList();
  requests.add("shop", { ...report("/ok"), status: 200 }, NOW_MS);
  requests.add("shop", { ...report("/cart"), status: 502, method: "POST" }, NOW_MS);
  requests.add("docs", { ...report("/slow"), status: 404, durationMs: 4_000 }, NOW_MS);
  requests.add("found", { ...report("/found?n=1"), status: 302, durationMs: 500 }, NOW_MS);
  const find = (filter: string): string[] => {
    requests.filter = filter;
    return requests.list().map((entry) => entry.report.path);
  };

  test.each<[string, string[]]>([
    ["status:5xx", ["/cart"]],
    ["status:502", ["/cart"]],
    ["5xx", ["/cart"]],
    ["404", ["/slow"]],
    ["-status:2xx path:/s", ["/slow"]],
    ["duration:>1s,<20ms method:get", ["/slow", "/ok"]],
    ["docs", ["/slow"]],
    ["query:n=*", ["/found?n=1"]],
    ["state:complete kind:http SHOP", ["/cart", "/ok"]],
  ])("%j finds %j", (filter, paths) => {
    expect(find(filter)).toEqual(paths);
    expect(requests.filterNote).toBeUndefined();
  });

  test.each([
    ["status:503", "no request matches the filter"],
    ["path:n=1", "no request matches the filter"],
    ["status:", "status:: the value after status: is missing"],
    ["statsu:5xx", "statsu:5xx: there is no field statsu; the fields are method,"],
    ["ip:203.0.113.7", "ip: only the server knows it; use: underpass logs --filter ip:…"],
  ])("%j shows %j in place of the requests", (filter, note) => {
    expect(find(filter)).toEqual([]);
    expect(render(state({ requests }), 100)).toContainEqual(expect.stringContaining(note));
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

describe("the rate of drawing", () => {
  test("has a limit: 2,000 requests in 4 seconds are at most 81 frames, each of which writes only changed rows", () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const written: string[] = [];
    const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      written.push(String(text));
      return true;
    });
    const requests = new RequestList();
    const screen = new TerminalScreen({
      getRows: (width, height) => render(state({ requests }), width, height),
    });
    try {
      for (let at = 0; at < 2_000; at += 1) {
        requests.add("", report(`/items/${at}`), NOW_MS);
        screen.draw();
        vi.advanceTimersByTime(2);
      }
    } finally {
      screen.end([]);
      write.mockRestore();
      vi.useRealTimers();
    }
    const frames = written.filter((text) => text.includes("\u001b[?2026h"));
    expect(frames.length).toBeGreaterThan(10);
    expect(frames.length).toBeLessThanOrEqual(81);
    expect(frames.slice(1, -1).join("")).not.toContain("Forwarding");
    expect(Math.max(...frames.map(({ length }) => length))).toBeLessThan(24 * 100);
  });
});
