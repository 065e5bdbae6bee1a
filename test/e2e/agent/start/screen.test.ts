/** The screen of `underpass start`, and of `underpass tcp`, cell by cell, as a person sees it in a terminal. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useTunnelFile } from "../../../harness/agent/tunnel-file.ts";
import {
  openSocket,
  startEcho,
  startTcpStack,
  type LocalServer,
} from "../../../harness/relay/tcp/stack.ts";
import { openScreen, type Screen, type ScreenOptions } from "../../../harness/screen.ts";

const file = useTunnelFile(
  () => startTcpStack({ address: "127.0.0.1", ports: 10 }),
  (_, response) => void response.end("x".repeat(2048)),
);
let echo: LocalServer;
beforeAll(async () => void (echo = await startEcho()));
afterAll(() => echo[Symbol.asyncDispose]());

const entry = (name: string) => `  ${name}: {local: ${file.port}, subdomain: live-${name}}`;
const database = () => `  db: {local: ${echo.port}, protocol: tcp}`;

const start = (options: Partial<ScreenOptions> = {}): Promise<Screen> =>
  openScreen(["start", "--all", "--config", file.path, "--token-file", "TOKEN"], {
    token: file.stack.token,
    width: 120,
    ...options,
  });

const visit = (name: string, path: string) => file.visit(`live-${name}`, path);
const getUrl = (name: string) => `http://live-${name}.localhost:${file.stack.api.server.port}`;

/** The text that `c` sent to the clipboard last: OSC 52. */
const getCopied = ({ received }: Screen): string => {
  const base64 = received.split("\u001b]52;c;").at(-1)?.split("\u0007")[0] ?? "";
  return Buffer.from(base64, "base64").toString();
};

/** Opens a connection to the public port of a TCP tunnel on the screen, and waits for an echo. */
async function connect(screen: Screen): Promise<Socket> {
  const [, publicPort = ""] = /tcp:\/\/[^ ]+:(\d+)/.exec(screen.rows.join("\n")) ?? [];
  const socket = await openSocket(Number(publicPort));
  socket.write("hello");
  await once(socket, "data");
  return socket;
}

test("each tunnel is shown with its state and address, and each request with its tunnel", async () => {
  await file.write([entry("web"), entry("docs"), database()]);
  await using screen = await start();
  await screen.waitFor(/web .*online, [^]*docs .*online, [^]*db .*online, /);
  const rows = screen.rows;
  const state = "online, <?\\d+ ms";
  expect(rows[2]).toMatch(
    new RegExp(`^> web {3}${state} +${getUrl("web")} -> http://localhost:${file.port}$`),
  );
  expect(rows[3]).toMatch(new RegExp(`^ {2}docs {2}${state} +${getUrl("docs")} -> `));
  expect(rows[4]).toMatch(
    new RegExp(`^ {2}db {4}${state} +tcp://[^ ]+ -> localhost:${echo.port} {2}0 connections$`),
  );
  await visit("docs", "/manual");
  await visit("web", "/menu");
  await screen.waitFor(
    /^ {2}\d\d:\d\d:\d\d web {2}200 GET .* 2\.0 kB {2}\/menu\n {2}\d\d:\d\d:\d\d docs 200 GET .*\/manual\n/m,
  );
  expect(screen.rows.join("\n")).toContain("Requests    2\n");
});

test("a TCP tunnel shows its open connections, and each connection that has ended", async () => {
  await file.write([entry("web-beside"), database()]);
  await using screen = await start();
  await screen.waitFor(/db .*online, /);
  const socket = await connect(screen);
  await screen.waitFor(/db .* 1 connection, 1 open$/m);
  socket.end();
  await screen.waitFor(/db .* 1 connection$/m);
  await screen.waitFor(/ db +tcp +[\d.]+ m?s +10 B {2}127\.0\.0\.1$/m);
});

test("a private TCP tunnel shows, and c copies, the command that connects to it instead of a URL", async () => {
  const args = ["tcp", String(echo.port), "--private", "--subdomain", "safe-deposit"];
  const server = file.stack.api.server.url;
  await using screen = await openScreen([...args, "--server", server, "--token-file", "TOKEN"], {
    token: file.stack.token,
  });
  await screen.waitFor(
    /^Forwarding {2}safe-deposit \(private\) -> localhost:\d+\nConnect {5}underpass connect safe-deposit\n/m,
  );
  expect(screen.rows.join("\n")).not.toContain("tcp://");
  screen.press("c");
  await screen.waitFor(/^(?:copied|asked the terminal to copy) underpass connect safe-deposit/m);
  expect(getCopied(screen)).toBe("underpass connect safe-deposit");
  screen.press("u");
  await screen.waitFor(/^A private tunnel has no URL: underpass connect safe-deposit$/m);
});

test("Tab and the arrows choose the tunnel whose URL c copies, and a selected request does", async () => {
  await file.write([entry("first"), entry("second"), entry("third")]);
  await using screen = await start();
  await screen.waitFor(/first .*online, [^]*second .*online, [^]*third .*online, /);
  expect(screen.rows.at(-1)).toMatch(/c copy URL {2}Tab tunnel/);
  screen.press("c");
  await screen.waitFor(/^(?:copied|asked the terminal to copy) .*live-first/m);
  expect(getCopied(screen)).toBe(getUrl("first"));
  screen.press("\tc");
  await screen.waitFor(/^> second[^]*^(?:copied|asked the terminal to copy) .*live-second/m);
  screen.press("\u001b[D\u001b[Dc");
  await screen.waitFor(/^> third[^]*^(?:copied|asked the terminal to copy) .*live-third/m);
  screen.press("\tc");
  await screen.waitFor(/^> first[^]*^(?:copied|asked the terminal to copy) .*live-first/m);
  await visit("second", "/chosen");
  await screen.waitFor(/\/chosen/);
  screen.press("jc");
  await screen.waitFor(
    /^> second[^]*^> .*\/chosen[^]*^(?:copied|asked the terminal to copy) .*live-second/m,
  );
  expect(getCopied(screen)).toBe(getUrl("second"));
});

test("/ filters requests by the name of their tunnel", async () => {
  await file.write([entry("shop"), entry("blog")]);
  await using screen = await start();
  await screen.waitFor(/shop .*online, [^]*blog .*online, /);
  await visit("shop", "/cart");
  await visit("blog", "/post");
  await screen.waitFor(/\/post\n.*\/cart/);
  screen.press("/shop\r");
  await screen.waitFor(/filter: shop\n\n.*\/cart\n\n/);
});

test("a change of the file adds and removes tunnels, and the others stay where they are", async () => {
  await file.write([entry("kept"), entry("gone")]);
  await using screen = await start();
  await screen.waitFor(/kept .*online, [^]*gone .*online, /);
  await visit("gone", "/before");
  await screen.waitFor(/ gone .*\/before/);
  await file.write([entry("added"), entry("kept")]);
  await screen.waitFor(/^ {2}added .*online, .*\n> kept .*online, .*\nServer/m);
  await screen.waitFor(/configuration reloaded: opened added; closed gone/);
  expect(screen.rows.join("\n")).toMatch(/ gone +200 GET .*\/before/);
  screen.press("q");
  expect(await screen.exit).toBe(0);
  expect(screen.rows.join("\n")).toMatch(/kept[^]*\/before\n\nStopped\.\n/);
});

test("problems of a changed file are shown until it is corrected, and the tunnels stay", async () => {
  await file.write([entry("stays"), entry("stays-too")]);
  await using screen = await start();
  await screen.waitFor(/stays .*online, [^]*stays-too .*online, /);
  await file.write([entry("stays"), "  stays-too: {local: 1, subdomian: x}"]);
  await screen.waitFor(
    /^File {8}.*underpass\.yml:5:25: unknown key subdomian; did you mean subdomain\?$/m,
  );
  await screen.waitFor(/^ {12}the tunnels stay as they are$/m);
  await visit("stays-too", "/served");
  await screen.waitFor(/\/served/);
  await file.write([entry("stays"), entry("stays-too")]);
  screen.kill("SIGHUP");
  await screen.waitFor(/configuration reloaded: nothing has changed/);
  expect(screen.rows.join("\n")).not.toContain("File");
  await rm(file.path);
  await screen.waitFor(/^File {8}can't read .*: it does not exist; check the path$/m);
  await file.write([entry("stays"), entry("stays-too")]);
  await screen.waitFor(/^(?:(?!File)[^])*configuration reloaded: nothing has changed/);
});

test("a tunnel that the server rejects says why, and the screen of the others goes on", async () => {
  await file.write([entry("accepted"), `  refused: {local: ${file.port}, project: nowhere}`]);
  await using screen = await start();
  await screen.waitFor(
    /accepted .*online, [^]*refused +rejected[^]*^Warning {5}refused: forbidden: the project does not exist\. Correct `project` in\n? *underpass\.yml/m,
  );
  await visit("accepted", "/after");
  await screen.waitFor(/\/after/);
});

test("a terminal of 40 columns shows all URLs, and a wider one each tunnel in one line again", async () => {
  await file.write([entry("narrow"), entry("narrow-too")]);
  await using screen = await start({ width: 40, height: 16 });
  await screen.waitFor(/narrow +online, [^]*narrow-too +online, /);
  expect(screen.rows.join("").replaceAll(" ", "")).toContain(getUrl("narrow-too"));
  screen.resize(120, 24);
  await screen.waitFor(/^ {2}narrow-too {2}online, .*http:\/\/live-narrow-too\..* -> /m);
  screen.resize(20, 10);
  await screen.waitFor(/^> narrow {2}online/m);
});

test("--log-level prints lines instead", async () => {
  await file.write([entry("lines")]);
  await using screen = await openScreen(
    ["start", "--config", file.path, "--token-file", "TOKEN", "--log-level", "info"],
    { token: file.stack.token },
  );
  await screen.waitFor(/^\[lines\] Forwarding http/m);
  expect(screen.received).not.toContain("\u001b");
});

test("`underpass tcp` has the same screen with its connections", async () => {
  await using screen = await openScreen(
    [
      ...["tcp", String(echo.port), "--server", file.stack.api.server.url],
      ...["--token-file", "TOKEN", "--subdomain", "live-tcp"],
    ],
    { token: file.stack.token },
  );
  await screen.waitFor(/^State {7}online, [^]*^Forwarding {2}tcp:\/\/.* -> localhost:\d+$/m);
  const socket = await connect(screen);
  await screen.waitFor(/^Connections 1, 1 open$/m);
  socket.end();
  await screen.waitFor(/^Connections 1\n\n {2}\d\d:\d\d:\d\d tcp .* 127\.0\.0\.1$/m);
  screen.press("c");
  await screen.waitFor(/^(?:copied|asked the terminal to copy) tcp:\/\//m);
  screen.press("q");
  expect(await screen.exit).toBe(0);
});
