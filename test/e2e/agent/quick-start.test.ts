/** The README's first section, typed as it stands there: only the ports are free ones instead of its own. */
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import { expect, test } from "vitest";
import { newcomer, readmeCommands } from "../../harness/clean-checkout.ts";
import { ownPort } from "../../harness/ports.ts";
import { canOpenTerminals } from "../../harness/terminal.ts";

const COMMANDS = await readmeCommands("Try it in a minute");
const [[, start = ""] = [], [login = "", http = ""] = []] = COMMANDS;

test("the README has the commands that are tried here", () => {
  expect(COMMANDS).toEqual([
    ["npm ci", "npm start"],
    ["npx underpass login --setup CODE", "npx underpass http 3000"],
  ]);
});

test("two terminals and the README give a working URL, and the next one needs no login", async () => {
  await using person = await newcomer({ PORT: String(await ownPort()) });
  const port = await ownPort();
  const startedAt = performance.now();
  await using server = person.types(start);
  const [line] = await server.shows(/^.*"message":"listening".*$/m);
  const { setupCode, firstLogin } = JSON.parse(line) as Record<string, string>;
  expect(firstLogin?.startsWith(login.replace("CODE", setupCode ?? ""))).toBe(true);

  await using loggedIn = person.types(firstLogin ?? "");
  expect(await loggedIn.exit, loggedIn.output).toBe(0);
  expect(loggedIn.output).toContain(`Next: ${http.replace("npx ", "")}`);

  const share = http.replace("3000", String(port));
  await using agent = person.types(share);
  const [, url = ""] = await agent.shows(/(http:\/\/\S+\.localhost:\d+) -> /);
  console.log(`from npm start to a URL: ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  await agent.shows(/nothing listens .* yet; waiting/);
  expect(await visit(url)).toMatchObject({ status: 502, code: "origin_unreachable" });

  await using local = await localServer(port);
  expect(await visit(url)).toMatchObject({ status: 200, body: local.greeting });
  await agent.shows(/^200 GET \/ /m);

  await using second = person.types(share);
  const [, secondUrl = ""] = await second.shows(/(http:\/\/\S+\.localhost:\d+) -> /);
  expect(secondUrl).not.toBe(url);
  expect(await visit(secondUrl)).toMatchObject({ status: 200, body: local.greeting });

  await agent.interrupt();
  expect(await visit(url)).toMatchObject({ status: 502, code: "agent_offline" });
  expect(await visit(secondUrl)).toMatchObject({ status: 200 });
  expect(await server.interrupt()).toBe(0);
  await second.shows(/disconnected: /);
});

test("at a terminal the server says what to type, and the agent shows the URL and each request", async ({
  skip,
}) => {
  skip(!canOpenTerminals(), "there is no script(1) of util-linux here to open a terminal with");
  await using person = await newcomer({ PORT: String(await ownPort()) });
  const port = await ownPort();
  await using server = person.types(start, { atTerminal: true });
  await server.shows(/Underpass is running\.[^]*API +http:[^]*tunnels +http:\/\/<name>\./);
  const [, firstLogin = ""] = await server.shows(/^ +(npx underpass login .*)$/m);
  await server.shows(/^ +npx underpass http 3000$/m);

  await using loggedIn = person.types(firstLogin, { atTerminal: true });
  await loggedIn.shows(/Your e-mail address/);
  loggedIn.write("ada@example.com\n");
  expect(await loggedIn.exit, loggedIn.output).toBe(0);
  expect(loggedIn.output).toContain("The owner's account is ada@example.com.");

  const share = http.replace("3000", String(port));
  await using agent = person.types(share, { atTerminal: true });
  await agent.shows(/State +online/);
  const [, url = ""] = await agent.shows(/Forwarding +(http:\S+) -> /);
  await agent.shows(/nothing listens there yet; waiting/);
  await using local = await localServer(port);
  expect(await visit(`${url}/menu?of=today`)).toMatchObject({ body: local.greeting });
  await agent.shows(/Requests +1\n[^]*200 GET +[\d.]+ ms {2}\/menu/);
  await agent.interrupt();
  expect(agent.output).toMatch(/Stopped\.\s*$/);
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
