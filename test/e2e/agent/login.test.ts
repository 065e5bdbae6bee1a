/** `underpass login` against a real server. */
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { explainError } from "../../../agent/error-message.ts";
import { runCommandLine } from "../../../agent/cli/run-command-line.ts";
import { shortenTimeouts } from "../../harness/short-timeouts.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { runAgent, runToEnd } from "../../harness/tunnel/agent.ts";
import { startApi, waitUntil, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

test("a machine gets its token in the poll that waits for the approval", async () => {
  const owner = await api.owner();
  const server = ["--server", api.server.url];
  await using agent = await runAgent(["login", ...server, "--label", "a machine that logs in"]);
  const code = await waitUntil(() =>
    Promise.resolve(/shows? the code ([A-Z]{4}-[A-Z]{4})/.exec(agent.stdout)?.[1]),
  );
  await waitUntil(async () => {
    const rows = await api.sql(
      "select 1 from device_codes where label = 'a machine that logs in' and last_polled_at is not null",
    );
    return rows.length > 0;
  });
  expect((await owner.post("/auth/cli/authorize", { device_code: code })).status).toBe(200);
  expect([await agent.exit, agent.stderr]).toEqual([0, ""]);
  expect(agent.stdout).toContain("This machine can now open tunnels.");
  expect(await api.sql("select 1 from tokens where name = 'a machine that logs in'")).toHaveLength(
    1,
  );
});

test("a token that could not be saved is not asked for", async () => {
  const file = join(await createTemporaryDir(), "not-a-directory");
  await writeFile(file, "");
  const args = ["login", "--server", api.server.url, "--label", "a machine that can't save"];
  const { code, stdout, stderr } = await runToEnd(args, { env: { XDG_CONFIG_HOME: file } });
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(
    /^underpass: a token can't be saved: .*not-a-directory.*; XDG_CONFIG_HOME/,
  );
  const label = "a machine that can't save";
  expect(await api.sql("select 1 from device_codes where label = $1", [label])).toEqual([]);
});

test("a setup code of a server that has an owner is refused with the way to log in", async () => {
  const { userId } = await api.owner();
  const setSuperadmin = (isSuperadmin: boolean) =>
    api.sql("update users set is_superadmin = $2 where id = $1", [userId, isSuperadmin]);
  await setSuperadmin(true);
  const server = ["--server", api.server.url];
  await using agent = await runAgent(["login", "--setup", "USED", "--email", "a@b.c", ...server]);
  expect(await agent.exit).toBe(1);
  await setSuperadmin(false);
  expect(agent.stderr).toMatch(/has an owner already.*underpass login/);
});

test("a value that the server refuses is named", async () => {
  const server = ["--server", api.server.url];
  await using agent = await runAgent(["login", "--label", "x".repeat(1_000), ...server]);
  expect([await agent.exit, agent.stderr]).toEqual([
    1,
    expect.stringMatching(/^underpass: label must have at most \d+ characters\n$/),
  ]);
});

test("a refusal of too many attempts says when to try again", async () => {
  const failure = { error: "rate_limited", message: "Too many requests. Try again later." };
  const api = createServer((_, response) => {
    response.writeHead(429, { "content-type": "application/json" });
    response.end(JSON.stringify({ ...failure, retry_after_seconds: 12 }));
  }).listen(0, "127.0.0.1");
  await once(api, "listening");
  const server = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const { code, stderr } = await runToEnd(["login", "--server", server]);
  api.close();
  expect([code, stderr]).toEqual([1, "underpass: Too many requests. Try again in 12 s.\n"]);
});

/** A server that answers each request with the next of these, then with the last one again, and errors with 400. */
async function startAnswering(answers: object[]) {
  const api = createServer((_, response) => {
    const answer = answers.length > 1 ? answers.shift()! : answers[0]!;
    response.writeHead("error" in answer ? 400 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  await once(api, "listening");
  const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  return { url, [Symbol.dispose]: () => void api.close() };
}

const STARTED = {
  ...{ device_code: "device", user_code: "ABCD-EFGH", interval: 1.25, expires_in: 600 },
  verification_uri: "http://127.0.0.1/cli",
};

test("a code that expires at the server says how to get another one", async () => {
  using api = await startAnswering([STARTED, { error: "expired", message: "It has expired." }]);
  const { code, stderr } = await runToEnd(["login", "--server", api.url]);
  expect([code, stderr]).toEqual([
    1,
    "underpass: the code has expired or was used already; run `underpass login` again\n",
  ]);
});

test("a login that a user denies ends with that reason", async () => {
  const owner = await api.owner();
  const label = "a machine that is denied";
  await using agent = await runAgent(["login", "--server", api.server.url, "--label", label]);
  const code = await waitUntil(() =>
    Promise.resolve(/shows? the code ([A-Z]{4}-[A-Z]{4})/.exec(agent.stdout)?.[1]),
  );
  expect((await owner.post("/auth/cli/deny", { device_code: code })).status).toBe(200);
  expect([await agent.exit, agent.stderr]).toEqual([
    1,
    "underpass: the login was denied in the browser\n",
  ]);
});

test("a login that is interrupted while it waits does not end as a successful one", async () => {
  using api = await startAnswering([STARTED, { error: "authorization_pending", message: "" }]);
  await using agent = await runAgent(["login", "--server", api.url]);
  await waitUntil(() => Promise.resolve(agent.stdout.includes("Waiting for your approval")));
  agent.child.kill("SIGINT");
  expect([await agent.exit, agent.child.signalCode]).toEqual([null, "SIGINT"]);
});

test("each slow_down makes the pauses between polls 5 seconds longer", async () => {
  const slowDown = { error: "slow_down", message: "Poll less often." };
  const token = { wire_bytes_b64: "AQ==", label: "laptop" };
  using api = await startAnswering([STARTED, slowDown, slowDown, token]);
  vi.stubEnv("XDG_CONFIG_HOME", await createTemporaryDir());
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const pausesMs: number[] = [];
  const { setTimeout } = globalThis;
  vi.spyOn(globalThis, "setTimeout").mockImplementation((run: () => void, ms = 0, ...args) => {
    // The HTTP client has timers, too, but none with the fraction of the interval.
    const isPause = ms % 1000 === 250;
    if (isPause) pausesMs.push(ms);
    return setTimeout(run, isPause ? 0 : ms, ...args);
  });
  const code = await runCommandLine(["login", "--server", api.url]);
  expect([code, pausesMs]).toEqual([0, [6_250, 11_250]]);
});

test("a server that does not answer ends the login with an error", async () => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  shortenTimeouts(200);
  const server = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const failure: unknown = await runCommandLine(["login", "--server", server]).catch(
    (error: unknown) => error,
  );
  silent.closeAllConnections();
  silent.close();
  expect(explainError(failure)).toBe(
    "the server does not answer in time; check the address and the network",
  );
});

test.each(["/tunnels", "/?team=1", "/#top"])(
  "a server address that ends with %s is refused with the address to use",
  async (end) => {
    const { code, stderr } = await runToEnd(["login", "--server", `https://a.test${end}`]);
    expect([code, stderr.split("\n")[0]]).toEqual([
      2,
      `underpass: the server address https://a.test${end} must not have a path, a query or a fragment; use https://a.test`,
    ]);
  },
);

test("logout removes the login of one server, and says that its token stays valid", async () => {
  const home = await createTemporaryDir();
  const directory = join(home, "underpass");
  const path = join(directory, "credentials.json");
  const env = { XDG_CONFIG_HOME: home };
  const login = { token: Buffer.from("secret").toString("base64"), label: "laptop" };
  const [first, second] = ["https://a.test", "https://b.test"] as const;
  await mkdir(directory);
  const servers = { [first]: login, [second]: login };
  await writeFile(path, JSON.stringify({ servers, defaultServer: second }), { mode: 0o600 });

  // A "/" at the end of the address is no path.
  const removed = await runToEnd(["logout", "--server", `${second}/`], { env });
  expect(removed).toMatchObject({ code: 0, stderr: "" });
  expect(removed.stdout).toContain(`Removed the login for ${second} from ${path}.`);
  expect(removed.stdout).toContain("Its token laptop stays valid until you revoke it");
  expect(removed.stdout).toContain(`The logins for these servers are still saved: ${first}.`);
  expect(removed.stdout).toContain(`Without --server, commands use ${first}.`);
  expect(JSON.parse(await readFile(path, "utf8"))).toEqual({
    servers: { [first]: login },
    defaultServer: first,
  });

  const unknown = await runToEnd(["logout", "--server", second], { env });
  expect([unknown.code, unknown.stderr]).toEqual([
    1,
    `underpass: no login for ${second} is saved; name another server with --server: ${first}\n`,
  ]);
  const variable = { ...env, UNDERPASS_TOKEN: login.token };
  const last = await runToEnd(["logout", "--server", first], { env: variable });
  expect([last.code, last.stderr]).toEqual([
    0,
    expect.stringContaining("UNDERPASS_TOKEN is set, so commands still use its token"),
  ]);
  const none = await runToEnd(["logout"], { env });
  expect([none.code, none.stderr]).toEqual([
    1,
    "underpass: no login is saved on this machine; to log in, run: underpass login\n",
  ]);
});

test("without a login, a command names `underpass login` and its option for another server", async () => {
  const { code, stderr } = await runToEnd(["http", "3000", "--server", "http://localhost:8787"]);
  expect([code, stderr]).toEqual([
    1,
    "underpass: this machine has no token for http://localhost:8787; run: underpass login, or for another server: underpass login --server URL\n",
  ]);
});

test("a directory in place of credentials.json is named as one", async () => {
  const home = await createTemporaryDir();
  const path = join(home, "underpass/credentials.json");
  await mkdir(path, { recursive: true });
  const { code, stderr } = await runToEnd(["http", "3000"], { env: { XDG_CONFIG_HOME: home } });
  expect([code, stderr]).toEqual([
    1,
    `underpass: ${path} is not a file; move it away, and run: underpass login\n`,
  ]);
});
