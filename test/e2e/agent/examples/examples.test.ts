/** The programs of examples/ work as they are. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mintToken, startApi, type TestApi } from "../../../harness/server/api.ts";
import { openBrowser, openPage } from "../../../harness/browser/browser.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";
import { runExample, type Login } from "./run-example.ts";

/** A domain that Vite, unlike `localhost`, does not allow by itself. */
const DOMAIN = "examples.test";
let api: TestApi;
let browser: Browser;
let login: Login;

beforeAll(async () => {
  [api, browser] = await Promise.all([
    startApi({ env: { SERVICE_DOMAIN: DOMAIN } }),
    openBrowser(DOMAIN),
  ]);
  const { wireBytes } = await mintToken(await api.owner());
  login = { server: new URL(api.server.url).origin, token: wireBytes };
});
afterAll(async () => {
  await browser?.close();
  await api?.stop();
});

/** Sends a request to the host of a public URL, whose name only this machine's server knows. */
function visit(url: string, method = "GET", body = "") {
  const { host, pathname } = new URL(url);
  const length = body === "" ? "" : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return exchange(
    api.server.port,
    `${method} ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${length}\r\n${body}`,
  );
}

test("express: the app answers at its public URL, and ends its tunnel before its server", async () => {
  const env = { UNDERPASS: "1", PORT: "0" };
  await using app = await runExample("express", ["node", "server.ts"], login, env);
  const [, url = ""] = await app.waitFor(/Public: (\S+)/);
  const { status, body } = await visit(`${url}/`);
  expect([status, body.toString()]).toEqual([200, `You opened ${url} from 127.0.0.1\n`]);
  app.stop("SIGTERM");
  expect(await app.exit).toBe(0);
  expect((await visit(`${url}/`)).status).toBe(502);
});

test("express: without UNDERPASS the app has a local port alone", async () => {
  await using app = await runExample("express", ["node", "server.ts"], login, { PORT: "0" });
  const [, local = ""] = await app.waitFor(/Local: +(\S+)/);
  expect((await fetch(local)).status).toBe(200);
  app.stop("SIGTERM");
  expect(await app.exit).toBe(0);
});

test("handler: the function answers at its public URL, and the program ends by itself", async () => {
  await using program = await runExample("handler", ["node", "server.ts"], login);
  const [url] = await program.waitFor(/http\S+/);
  expect((await visit(`${url}/`)).body.toString()).toBe(`Hello from ${url}/\n`);
  expect((await visit(`${url}/echo`, "POST", "upload")).body.toString()).toBe("upload");
  await program.waitFor(/POST \/echo 200/);
  program.stop("SIGINT");
  expect(await program.exit).toBe(0);
});

test("vite: the page at the public URL shows a changed module without a reload", async () => {
  const port = ["--port", "0", "--host", "127.0.0.1"];
  await using dev = await runExample("vite", ["vite", ...port], login);
  const [, url = ""] = await dev.waitFor(/Public: +(\S+)/);
  expect(new URL(url).hostname.endsWith(`.${DOMAIN}`)).toBe(true);
  const { page, problems } = await openPage(browser);
  const connected = page.waitForEvent("console", (line) => line.text().includes("connected."));
  await page.goto(url);
  await page.getByRole("heading", { name: "Change me in message.js" }).waitFor();
  await connected;
  await page.evaluate("window.isStillTheSamePage = true");
  const path = join(dev.dir, "message.js");
  await writeFile(path, (await readFile(path, "utf8")).replace("Change me", "Changed"));
  await page.getByRole("heading", { name: "Changed in message.js" }).waitFor();
  expect(await page.evaluate("window.isStillTheSamePage")).toBe(true);
  expect(problems).toEqual([]);
  await page.close();
  dev.stop("SIGTERM");
  await dev.exit;
});

test("webhooks: the test of the example passes when the provider calls its public URL", async () => {
  await using provider = await startProvider();
  const patient = ["--testTimeout=120000", "--hookTimeout=120000"];
  const env = { PAYMENTS_API: provider.url };
  await using tests = await runExample("webhooks", ["vitest", "run", ...patient], login, env);
  expect(await tests.exit).toBe(0);
  await tests.waitFor(/1 passed/);
  expect(provider.statuses).toEqual([204]);
});

/** Accepts a payment, then reports it to its callback URL. */
async function startProvider() {
  const statuses: number[] = [];
  const report = async (request: IncomingMessage): Promise<void> => {
    const payment = (await json(request)) as { order: string; callback_url: string };
    const result = JSON.stringify({ order: payment.order, status: "succeeded" });
    statuses.push((await visit(payment.callback_url, "POST", result)).status);
  };
  const server: Server = createServer((request, response) => {
    void report(request);
    request.on("end", () => response.writeHead(202).end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    statuses,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
