/**
 * The README's first section, typed as it stands there: only the ports are free ones instead of its own. The packages for
 * development are not installed.
 */
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import {
  createCleanCheckout,
  readReadmeCommands,
  type CleanCheckout,
} from "../../harness/clean-checkout.ts";
import { reservePort } from "../../harness/ports.ts";
import { canOpenTerminals } from "../../harness/terminal.ts";

const COMMANDS = await readReadmeCommands("Try it in a minute");
const [[, start = ""] = [], [login = "", http = ""] = []] = COMMANDS;

let person: CleanCheckout;
beforeAll(async () => {
  person = await createCleanCheckout({ PORT: String(await reservePort()) });
});
afterEach(() => person.clear());
afterAll(() => person?.[Symbol.asyncDispose]());

test("the README has the commands that are tried here", () => {
  expect(COMMANDS).toEqual([
    ["npm ci", "npm start"],
    ["npx underpass login --setup CODE", "npx underpass http 3000"],
  ]);
});

test("only the packages remain that a server needs", async () => {
  await using removed = person.type("test ! -e node_modules/react -a -e node_modules/hono");
  expect(await removed.exit).toBe(0);
});

test("two terminals and the README give a working URL, and the next one needs no login", async () => {
  const port = await reservePort();
  const startedAt = performance.now();
  await using server = person.type(start);
  const [line] = await server.waitForOutput(/^.*"message":"listening".*$/m);
  const { setupCode, firstLogin, url: dashboard = "" } = JSON.parse(line) as Record<string, string>;
  expect(await visit(dashboard)).toMatchObject({
    body: expect.stringContaining('<div id="root">'),
  });
  expect(firstLogin?.startsWith(login.replace("CODE", setupCode ?? ""))).toBe(true);

  await using loggedIn = person.type(firstLogin ?? "");
  expect(await loggedIn.exit, loggedIn.output).toBe(0);
  expect(loggedIn.output).toContain(`Next: ${http}`);

  const share = http.replace("3000", String(port));
  await using agent = person.type(share);
  const [, url = ""] = await agent.waitForOutput(/(http:\/\/\S+\.localhost:\d+) -> /);
  console.log(`from npm start to a URL: ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  await agent.waitForOutput(/nothing is listening .* yet; start the local server/);
  expect(await visit(url)).toMatchObject({ status: 502, code: "origin_unreachable" });

  await using local = await localServer(port);
  expect(await visit(url)).toMatchObject({ status: 200, body: local.greeting });
  await agent.waitForOutput(/ 200 GET \/ /m);

  await using second = person.type(share);
  const [, secondUrl = ""] = await second.waitForOutput(/(http:\/\/\S+\.localhost:\d+) -> /);
  expect(secondUrl).not.toBe(url);
  expect(await visit(secondUrl)).toMatchObject({ status: 200, body: local.greeting });

  await agent.interrupt();
  expect(await visit(url)).toMatchObject({ status: 502, code: "agent_offline" });
  expect(await visit(secondUrl)).toMatchObject({ status: 200 });
  expect(await server.interrupt()).toBe(0);
  await second.waitForOutput(/disconnected: /);
});

test("at a terminal the server says what to type, and the agent shows the URL and each request", async ({
  skip,
}) => {
  skip(!canOpenTerminals(), "there is no script(1) of util-linux here to open a terminal with");
  const port = await reservePort();
  await using server = person.type(start, { atTerminal: true });
  await server.waitForOutput(
    /Underpass is running\.[^]*dashboard and API +http:[^]*tunnels +http:\/\/<name>\./,
  );
  await server.waitForOutput(
    /open the dashboard and enter the code\n +([A-Z0-9]{4}-){3}[A-Z0-9]{4},/,
  );
  const [, firstLogin = ""] = await server.waitForOutput(/^ +(npx underpass login .*)$/m);
  await server.waitForOutput(/^ +npx underpass http 3000$/m);

  await using loggedIn = person.type(firstLogin, { atTerminal: true });
  await loggedIn.waitForOutput(/Your email address/);
  loggedIn.write("ada@example.com\n");
  expect(await loggedIn.exit, loggedIn.output).toBe(0);
  expect(loggedIn.output).toContain("The owner's account is ada@example.com.");

  const share = http.replace("3000", String(port));
  await using agent = person.type(share, { atTerminal: true });
  await agent.waitForOutput(/State +online/);
  const [, url = ""] = await agent.waitForOutput(/Forwarding +(http:\S+) -> /);
  await agent.waitForOutput(/^Warning +nothing is listening on \S+ yet; start the local server$/m);
  await using local = await localServer(port);
  expect(await visit(`${url}/menu?of=today`)).toMatchObject({ body: local.greeting });
  await agent.waitForOutput(/Requests +1\n[^]*200 GET +[\d.]+ ms +[\d.]+ k?B {2}\/menu/);
  await agent.interrupt();
  // npx draws its progress indicator after it, and erases it.
  expect(agent.output).toMatch(/\nStopped\.\n/);
  expect(await server.interrupt()).toBe(0);
});

interface LocalServer extends AsyncDisposable {
  greeting: string;
}

async function localServer(port: number): Promise<LocalServer> {
  const greeting = `hello from ${port}`;
  const server: Server = createServer((_request, response) => response.end(greeting));
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    greeting,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Node does not resolve `*.localhost`, browsers and curl do. */
function visit(url: string): Promise<{ status: number; code: unknown; body: string }> {
  const { port, host, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path: pathname + search, headers: { host } }, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (text: string) => (body += text));
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, code: answer.headers["underpass-error"], body }),
      );
    })
      .on("error", reject)
      .end();
  });
}
