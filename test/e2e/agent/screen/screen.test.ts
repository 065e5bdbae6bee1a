/** The screen of `underpass http`, cell by cell, as a person sees it in a terminal. */
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { get, type IncomingMessage, type ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { startSharedServer, type SharedServer } from "../../../harness/agent/shared-server.ts";
import { openScreen, type Screen } from "../../../harness/screen.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

let shared: SharedServer;
/** The local server's latest event stream. */
let events: ServerResponse;
const share: SharedServer["share"] = (...args) => shared.share(...args);
const visit: SharedServer["visit"] = (...args) => shared.visit(...args);
const getUrl: SharedServer["getUrl"] = (name) => shared.getUrl(name);
const getArgs: SharedServer["getArgs"] = (...args) => shared.getArgs(...args);

beforeAll(async () => {
  shared = await startSharedServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://local.test");
    if (pathname === "/events") {
      events = response.writeHead(200, { "content-type": "text/event-stream" });
      return void response.write("data: 1\n\n");
    }
    response.statusCode = pathname === "/missing" ? 404 : 200;
    response.end("x".repeat(2048));
  });
  new WebSocketServer({ server: shared.local }).on("connection", (socket) =>
    socket.on("message", (message) => socket.send(message as Buffer)),
  );
});
afterAll(() => shared?.[Symbol.asyncDispose]());

/** The escape sequence that `copy` sends: OSC 52. */
const getCopied = ({ received }: Screen): string | undefined => {
  const base64 = received.split("\u001b]52;c;")[1]?.split("\u0007")[0];
  return base64 === undefined ? undefined : Buffer.from(base64, "base64").toString();
};

describe("a terminal of 80 columns and 24 rows shows", () => {
  test("the tunnel, and a request with its time, status, duration, size and path", async () => {
    await using screen = await share("screen-80");
    const rows = screen.rows;
    expect(rows[0]).toBe("underpass");
    expect(rows[2]).toMatch(/^State {7}online, <?\d+ ms$/);
    expect(rows[3]).toBe(`Forwarding  ${getUrl("screen-80")} -> http://localhost:${shared.port}`);
    expect(rows[4]).toBe(`Server      ${new URL(shared.api.server.url).host}`);
    expect(rows[23]).toBe(
      "q quit  c copy URL  / filter  j k select  r replay  o dashboard  ? keys",
    );
    await screen.waitFor(/^Account {5}\S.*, \w+ plan, token \S.*\nRequests {4}0$/m);
    await visit("screen-80", "/menu?of=today");
    await screen.waitFor(/Requests {4}1\n/);
    expect(screen.rows[8]).toMatch(
      /^ {2}\d\d:\d\d:\d\d 200 GET {4} +[\d.]+ ms +2\.0 kB {2}\/menu\?of=today$/,
    );
    // The URL is a link, and the status of a successful request is green.
    expect(screen.received).toContain(`\u001b]8;;${getUrl("screen-80")}\u001b\\`);
    const status = screen.terminal.buffer.active.getLine(screen.terminal.buffer.active.baseY + 8);
    expect(status?.getCell(11)?.getFgColor()).toBe(2);
  });

  test("a WebSocket while it is open, and after its end", async () => {
    await using screen = await share("screen-socket");
    const socket = new WebSocket(`ws://127.0.0.1:${shared.api.server.port}/chat`, {
      headers: { host: "screen-socket.localhost" },
    });
    await once(socket, "open");
    await screen.waitFor(/Requests {4}1, 1 open/);
    socket.send("hello");
    await screen.waitFor(/101 GET +\d+ s +10 B {2}\/chat {2}WebSocket open, 2 messages$/m);
    socket.close();
    await screen.waitFor(/Requests {4}1\n[^]*\/chat {2}WebSocket closed, 2 messages/);
  });

  test("an event stream while it is open, with its age and its bytes so far, and after its end", async () => {
    await using screen = await share("screen-events");
    const { port } = shared.api.server;
    const headers = { host: "screen-events.localhost" };
    const visitor = get({ host: "127.0.0.1", port, path: "/events", headers });
    visitor.on("error", () => undefined);
    await screen.waitFor(/Requests {4}1, 1 open/);
    await screen.waitFor(/200 GET +\d+ s +9 B {2}\/events {2}event stream open$/m);
    events.write("data: 2\n\n");
    await screen.waitFor(/200 GET +[1-9]\d* s +18 B {2}\/events {2}event stream open$/m);
    visitor.destroy();
    await screen.waitFor(/Requests {4}1\n[^]* 18 B {2}\/events {2}event stream closed$/m);
  });

  test("a warning in full as long as it holds", async () => {
    await using screen = await openScreen(["http", "1", ...getArgs("screen-warning").slice(2)], {
      token: shared.token,
      width: 40,
    });
    await screen.waitFor(
      /nothing is listening on\nhttp:\/\/localhost:1 yet; start the local\nserver\n/,
    );
  });
});

describe("a narrow terminal", () => {
  test("of 40 columns and 12 rows shows all of the URL, and requests with a shorter path", async () => {
    await using screen = await share("screen-of-a-tunnel-with-a-long-name", {
      width: 40,
      height: 12,
    });
    const url = getUrl("screen-of-a-tunnel-with-a-long-name");
    expect(screen.rows.join("")).toContain(url);
    await visit("screen-of-a-tunnel-with-a-long-name", `/${"long-path/".repeat(9)}`);
    await screen.waitFor(/200 GET {4} +[\d.]+ ms {2}\/long-[a-z/-]*…/);
    expect(screen.rows).toHaveLength(12);
    expect(screen.rows[11]).toMatch(/^q quit.*\? keys$/);
  });

  test("of 40 columns has a label at each value, and tells the server from the inspector", async () => {
    const args = getArgs("screen-labels", "--inspect", "127.0.0.1:4400");
    await using screen = await openScreen(args, { token: shared.token, width: 40 });
    await screen.waitFor(/^State online, <?\d+ ms$/m);
    await screen.waitFor(/^Inspector http:\/\/127\.0\.0\.1:\d+$/m);
    await screen.waitFor(/^Requests 0$/m);
    expect(screen.rows).toContain(`Server ${new URL(shared.api.server.url).host}`);
    await visit("screen-labels", "/menu");
    await screen.waitFor(/^Requests 1\n\n 200 GET .*\/menu$/m);
  });

  test("of 20 columns shows status, method and path", async () => {
    await using screen = await share("screen-20", { width: 20, height: 16 });
    await visit("screen-20", "/missing?or=not");
    await screen.waitFor(/^ 404 GET {3}\/missing…$/m);
  });

  test("gets its columns when it becomes wider", async () => {
    await using screen = await share("screen-resized", { width: 30, height: 12 });
    await visit("screen-resized", "/menu");
    await screen.waitFor(/^ 200 GET {3}\/menu$/m);
    screen.resize(100, 30);
    await screen.waitFor(/^ {2}\d\d:\d\d:\d\d 200 GET {4} +[\d.]+ ms +2\.0 kB {2}\/menu$/m);
    await screen.waitFor(/^Forwarding {2}http\S+ -> http/m);
    screen.resize(40, 12);
    await screen.waitFor(/^ 200 GET {4} +[\d.]+ ms {2}\/menu$/m);
    expect(screen.rows.filter((row) => row.includes("/menu"))).toHaveLength(1);
  });
});

describe("the keys", () => {
  test("c copies the URL, u shows it as a QR code, ? lists the keys", async () => {
    const env = { DISPLAY: "", WAYLAND_DISPLAY: "", WSL_DISTRO_NAME: "" };
    await using screen = await share("screen-keys", { height: 40, env });
    screen.press("c");
    await screen.waitFor(/^asked the terminal to copy http:\/\/screen-keys\.localhost/m);
    expect(getCopied(screen)).toBe(getUrl("screen-keys"));
    screen.press("u");
    await screen.waitFor(/█ ▀▀▀▀▀ █/);
    screen.press("x?");
    await screen.waitFor(/^q {5}quit, as Ctrl\+C does$/m);
    screen.press("x");
    await screen.waitFor(/^Forwarding/m);
  });

  test.runIf(process.platform === "linux")(
    "c copies the URL with the first program for that which succeeds",
    async () => {
      const directory = await createTemporaryDir();
      const record = join(directory, "copied");
      const programs = { "wl-copy": "exit 1", xclip: `echo "$*" > ${record}; cat >> ${record}` };
      for (const [name, script] of Object.entries(programs)) {
        await writeFile(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      }
      const env = {
        ...{ DISPLAY: ":0", WAYLAND_DISPLAY: "wayland-0", SSH_CONNECTION: "", SSH_TTY: "" },
        PATH: `${directory}${delimiter}${process.env["PATH"]}`,
      };
      await using screen = await share("screen-copy", { env });
      screen.press("c");
      await screen.waitFor(/^copied http:\/\/screen-copy\.localhost/m);
      expect(await readFile(record, "utf8")).toBe(`-selection clipboard\n${getUrl("screen-copy")}`);
    },
  );

  test("/ filters requests while it is typed; Enter keeps the filter, Esc clears it", async () => {
    await using screen = await share("screen-filter");
    for (const path of ["/apple", "/banana", "/missing"]) await visit("screen-filter", path);
    await screen.waitFor(/Requests {4}3\n/);
    screen.press("/ban");
    await screen.waitFor(/filter: ban_/);
    await screen.waitFor(/Requests {4}3 {3}filter: ban\n\n.*\/banana\n\n/);
    screen.press("\r");
    await screen.waitFor(/q quit/);
    expect(screen.rows.join("\n")).not.toContain("/apple");
    screen.press("\u001b");
    await screen.waitFor(/\/missing\n.*\/banana\n.*\/apple/);
    screen.press("/404\r");
    await screen.waitFor(/Requests {4}3 {3}filter: 404\n\n.*\/missing\n\n/);
  });

  test("j, k and the arrows select a request, which stays selected when others arrive", async () => {
    await using screen = await share("screen-select");
    for (const path of ["/1", "/2", "/3"]) await visit("screen-select", path);
    await screen.waitFor(/Requests {4}3\n/);
    screen.press("j\u001b[B");
    await screen.waitFor(/^> .*\/2$/m);
    await visit("screen-select", "/4");
    await screen.waitFor(/\/4\n.*\/3\n> .*\/2\n/);
    screen.press("kk");
    await screen.waitFor(/^> .*\/4$/m);
  });
});

test("control characters and escape sequences in a path are printed as text", async () => {
  await using screen = await share("screen-hostile");
  screen.clearReceived();
  await visit("screen-hostile", "/%1b%5b2J%e6%97%a5%e6%9c%ac%e2%80%ae");
  await screen.waitFor(/\/%1b%5b2J日本%e2%80%ae/);
  await visit("screen-hostile", "/\u009b2J-\u009d0;title\u0007");
  await visit("screen-hostile", "/end");
  await screen.waitFor(/\/end/);
  // Only the screen's own sequences: cursor, styles, and the frame of an update.
  const own = /\u001b\[(?:\d+;1H|[\d;]*m|K|\?(?:7|2026)[hl])/g;
  expect(screen.received.replaceAll(own, "")).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
});

test("a redraw writes only what has changed, and clears nothing", async () => {
  await using screen = await share("screen-flicker");
  await visit("screen-flicker", "/first");
  await screen.waitFor(/Requests {4}1\n/);
  screen.clearReceived();
  await visit("screen-flicker", "/second");
  await screen.waitFor(/\/second\n.*\/first/);
  const { received } = screen;
  expect(received).not.toMatch(/\u001b\[\d*J/);
  expect(received).not.toContain("Forwarding");
  expect(received).not.toContain("quit");
  expect(received.length).toBeLessThan(600);
});

describe("the terminal is restored", () => {
  const isRestored = ({ received }: Screen): void => {
    expect(received.lastIndexOf("\u001b[?25h")).toBeGreaterThan(
      received.lastIndexOf("\u001b[?25l"),
    );
    expect(received.lastIndexOf("\u001b[?7h")).toBeGreaterThan(received.lastIndexOf("\u001b[?7l"));
    expect(received).not.toContain("\u001b[?1049h");
  };

  test.each([
    ["q", (screen: Screen) => screen.press("q")],
    ["Ctrl-C", (screen: Screen) => screen.press("\u0003")],
    ["SIGTERM", (screen: Screen) => screen.kill("SIGTERM")],
  ])("after %s, and the last state stays visible", async (key, stop) => {
    const name = `screen-end-${key.toLowerCase()}`;
    await using screen = await share(name);
    await visit(name, "/last");
    await screen.waitFor(/\/last/);
    stop(screen);
    expect(await screen.exit).toBe(0);
    isRestored(screen);
    const text = screen.rows.join("\n");
    expect(text).toMatch(/Forwarding[^]*\/last\n\nStopped\.\n/);
    expect(text).not.toContain("q quit");
  });

  test("when q is pressed again while a response is open, which the first q waits for", async () => {
    await using screen = await share("screen-quit-twice");
    const { port } = shared.api.server;
    const headers = { host: "screen-quit-twice.localhost" };
    const visitor = get({ host: "127.0.0.1", port, path: "/events", method: "POST", headers });
    visitor.on("error", () => undefined);
    await screen.waitFor(/Requests {4}1, 1 open/);
    screen.press("q");
    await screen.waitFor(
      /^q or Ctrl\+C quits now; stopping: 1 request is open, and may finish within 10 s$/m,
    );
    screen.press("q");
    expect(await screen.exit).toBe(130);
    isRestored(screen);
    visitor.destroy();
  });

  test("when the shell stops the command with Ctrl-Z, and fg shows the screen again", async () => {
    await using screen = await openScreen(getArgs("screen-stopped"), {
      token: shared.token,
      shell: "-i",
      env: { PS1: "prompt> " },
    });
    await screen.waitFor(/prompt>/);
    screen.press("stty -a | grep -o '.icanon'; $UNDERPASS\r");
    await screen.waitFor(/online, /);
    screen.press("\u001a");
    await screen.waitFor(/Stopped[^]*prompt>/);
    screen.press("stty -a | grep -o ' -\\?icanon'\r");
    await screen.waitFor(/^ icanon$/m);
    screen.press("fg\r");
    await screen.waitFor(/^Forwarding[^]*\? keys$/m);
    await visit("screen-stopped", "/continued");
    await screen.waitFor(/\/continued/);
    screen.press("q");
    await screen.waitFor(/Stopped\.[^]*prompt>/);
  });
});

describe("lines are printed instead of the screen", () => {
  test.each<[string, Record<string, string>, string[]]>([
    ["on a dumb terminal", { TERM: "dumb" }, []],
    ["in continuous integration", { CI: "true" }, []],
    ["with --log-level", {}, ["--log-level", "info"]],
  ])("%s", async (_, env, more) => {
    const name = `screen-lines-${Object.keys(env)[0]?.toLowerCase() ?? "level"}`;
    await using screen = await openScreen(getArgs(name, ...more), { token: shared.token, env });
    await screen.waitFor(/^Forwarding http/m);
    expect(screen.received).not.toContain("\u001b");
  });

  test("which say what a stop waits for, also as an event", async () => {
    for (const [format, expected] of [
      ["--log-level=error", /^stopping: 1 request is open, .*; press Ctrl\+C again to quit now$/m],
      ["--json", /^\{"event":"stopping","time":"[^"]+","openRequests":1\}$/m],
    ] as const) {
      await using screen = await openScreen(getArgs("screen-stopping", format), {
        token: shared.token,
        width: 200,
      });
      const { port } = shared.api.server;
      const headers = { host: "screen-stopping.localhost" };
      const [visitor] = await vi.waitFor(async () => {
        const path = "/events";
        const request = get({ host: "127.0.0.1", port, path, method: "POST", headers });
        const [response] = (await once(request, "response")) as [IncomingMessage];
        expect(response.resume().statusCode).toBe(200);
        return [request];
      }, WAIT_OPTIONS);
      visitor.on("error", () => undefined);
      screen.kill("SIGINT");
      await screen.waitFor(expected);
      screen.kill("SIGINT");
      expect(await screen.exit).toBe(130);
      visitor.destroy();
    }
  });

  test("and NO_COLOR leaves out the colors of the screen", async () => {
    await using screen = await share("screen-plain", { env: { NO_COLOR: "1" } });
    expect(screen.received).not.toMatch(/\u001b\[[\d;]*m/);
  });
});
