/** `underpass doctor` on a working server, with tokens and local servers that have problems. */
import { chmod, rename } from "node:fs/promises";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { createServer as createHttpsServer } from "node:https";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { CheckName, Report } from "../../../../agent/doctor/check.ts";
import { ROOT } from "../../../../self-host/build/build.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { createCertificate } from "../../../harness/fakes/certificate.ts";
import { startHttpServer } from "../../../harness/fakes/http-server.ts";
import { reservePort } from "../../../harness/ports.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../../harness/server/api.ts";
import { RelayLink } from "../../../harness/server/relay-link.ts";
import { canOpenTerminals, typeCommand } from "../../../harness/terminal.ts";
import { runAgent, runToEnd } from "../../../harness/tunnel/agent.ts";
import { diagnose, formatReport, pickChecks, saveToken } from "../../../harness/agent/diagnosis.ts";

let api: TestApi;
let owner: Person;
let token: Buffer;
let directory: string;
let tokenFile: string;

beforeAll(async () => {
  [api, directory] = await Promise.all([startApi(), createTemporaryDir()]);
  owner = await api.owner();
  token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
  tokenFile = await save("token", token);
});
afterAll(() => api.stop());
afterEach(() => vi.unstubAllEnvs());

const save = (name: string, bytes: Uint8Array) => saveToken(directory, name, bytes);
const check = (options: { server?: string; tokenFile?: string; local?: string } = {}) =>
  diagnose({ server: api.server.url, tokenFile, ...options });

describe("on a working setup", () => {
  test("every check is ok, and the command exits with 0 and never prints the token", async () => {
    const server = ["--server", api.server.url, "--token-file", tokenFile];
    await using agent = await runAgent(["doctor", String(api.server.port), ...server, "--json"]);
    expect([await agent.exit, agent.stderr]).toEqual([0, ""]);
    const reports = JSON.parse(agent.stdout) as Report[];
    const notOk = reports.flatMap((report) => (report.status === "ok" ? [] : report.check));
    const measured: CheckName[] = ["latency", "throughput"];
    // The server is given by its address, and speaks http. How fast it answers depends on what else this machine does.
    // No relay is connected to it.
    expect(notOk.filter((name) => !measured.includes(name))).toEqual(["dns", "tls", "relay"]);
    for (const report of reports) {
      expect(Object.keys(report)).toEqual(["check", "status", "tried", "result", "advice"]);
    }
    const find = (name: CheckName) => reports.find((report) => report.check === name)?.result;
    expect(find("token")).toContain('"test" of the organization');
    expect(find("throughput")).toMatch(/^[\d.]+ Mbit\/s from the server, [\d.]+ Mbit\/s to/);
    expect(find("latency")).toMatch(/^median [\d.]+ ms, worst [\d.]+ ms$/);
    for (const encoding of ["base64", "base64url", "hex"] as const) {
      expect(agent.stdout).not.toContain(token.toString(encoding).slice(0, 40));
    }
  });

  test("it prints words without a terminal, and symbols with one", async ({ skip }) => {
    const args = ["doctor", "--server", api.server.url, "--token-file", tokenFile];
    await using piped = await runAgent(args);
    expect(await piped.exit).toBe(0);
    expect(piped.stdout).toMatch(/^ok +WebSocket +it opens, and messages pass both ways$/m);
    expect(piped.stdout).toMatch(/^skipped +Local server +no port was given/m);
    expect(piped.stdout).toMatch(/\n\n(Everything works|\d warnings?; \d+ checks are fine)\.\n$/);
    skip(!canOpenTerminals(), "there is no script(1) of util-linux here to open a terminal with");
    const command = `${process.execPath} ${join(ROOT, "agent/dist/underpass.js")} ${args.join(" ")}`;
    await using shown = typeCommand(command, { cwd: directory, atTerminal: true });
    expect(await shown.exit).toBe(0);
    expect(shown.output).toMatch(/^✓ WebSocket +it opens/m);
  });

  test("a relay whose address does not lead to it is a warning that names the operator's settings", async () => {
    const url = `ws://127.0.0.1:${await reservePort()}`;
    using _ = await RelayLink.connect(api.server, { relayId: "doctor", url });
    const report = formatReport((await check()).relay);
    expect(report).toMatch(/^warning: no TCP tunnel or private network works from here: /);
    expect(report).toContain(`${url} can't be reached (`);
    expect(report).toContain("RELAY_HOST or RELAY_URL");
  });

  test("it leaves no tunnel behind", async () => {
    const alone = await api.owner();
    const { wireBytes } = await mintToken(alone);
    await check({ tokenFile: await save("alone", Buffer.from(wireBytes, "base64")) });
    expect((await alone.get("/tunnels")).body).toEqual([]);
  });
});

describe("settings", () => {
  test.runIf(process.platform !== "win32")(
    "a token file that others can read is a warning",
    async () => {
      const path = await save("open", token);
      await chmod(path, 0o644);
      const { settings } = await check({ tokenFile: path });
      expect(formatReport(settings)).toMatch(/^warning: .*other users.* -> Run: chmod 600 /);
    },
  );

  test("without a token the WebSocket is still tried, and the way to get one is named", async () => {
    vi.stubEnv("XDG_CONFIG_HOME", directory);
    const diagnosis = await diagnose({ server: api.server.url, tokenFile: undefined });
    expect(diagnosis.settings.advice).toBe(`Run: underpass login --server ${api.server.url}`);
    expect(formatReport(diagnosis.websocket)).toBe(
      "ok: it opens, and the server's message arrives -> null",
    );
    expect(diagnosis.token.status).toBe("skipped");
    expect(pickChecks(diagnosis, "problem")).toEqual(["settings"]);
  });

  test("without a token no tunnel works: the command exits with 1", async () => {
    const { code, stdout } = await runToEnd(["doctor", "--server", api.server.url]);
    expect(code).toBe(1);
    expect(stdout).toContain(`to do: Run: underpass login --server ${api.server.url}\n`);
    expect(stdout).toMatch(/\n1 problem[^\n]*\.\n$/);
  });

  test("a token file that does not exist is a problem, and the network is still tried", async () => {
    const diagnosis = await check({ tokenFile: join(directory, "missing") });
    expect(pickChecks(diagnosis, "problem")).toEqual(["settings"]);
    expect(diagnosis.settings.result).toMatch(/the token file: .*missing does not exist/);
    expect(diagnosis.websocket.status).toBe("ok");
  });

  test("a text that is no address ends the checks of the server", async () => {
    const diagnosis = await check({ server: "ftp://files.example" });
    expect(pickChecks(diagnosis, "problem")).toEqual(["settings"]);
    expect(diagnosis.token.result).toBe("there is no server to reach");
  });
});

describe("the token", () => {
  const mint = async (scope: object, by = owner) => {
    const { nonce, wireBytes } = await mintToken(by, scope);
    return { nonce, file: await save(nonce, Buffer.from(wireBytes, "base64")) };
  };

  test("is described with its restrictions and its budget", async () => {
    const { nonce, file } = await mint({ allowedSubdomains: ["shop-*"], tunnelQuota: 2 });
    await owner.put(`/tokens/${nonce}/budget`, { monthlyBudgetUsdCents: 500 });
    const { result } = (await check({ tokenFile: file })).token;
    expect(result).toContain("for shop-*, 2 tunnels at once");
    expect(result).toContain("0.00 USD of 5.00 USD spent this month");
  });

  test("that is revoked is reported, and the WebSocket is not blamed", async () => {
    const { nonce, file } = await mint({});
    await owner.delete(`/tokens/${nonce}`);
    const diagnosis = await check({ tokenFile: file });
    expect(pickChecks(diagnosis, "problem")).toEqual(["token"]);
    expect(formatReport(diagnosis.token)).toMatch(
      /The token was revoked\. -> Write a valid token to \S+, and run the command again/,
    );
    expect(diagnosis.throughput.status).toBe("skipped");
  });

  test("whose budget is used up is reported", async () => {
    const { nonce, file } = await mint({});
    await owner.put(`/tokens/${nonce}/budget`, { monthlyBudgetUsdCents: 0 });
    const diagnosis = await check({ tokenFile: file });
    expect(formatReport(diagnosis.token)).toMatch(/^problem: .*budget is used up -> An owner/);
  });
});

describe("a local server on a Unix socket", () => {
  const checkSocket = async (path: string) =>
    formatReport((await check({ local: `unix:${path}` })).local);

  test("that does not exist", async () => {
    const path = join(directory, "none.sock");
    expect(await checkSocket(path)).toBe(
      `problem: there is no socket ${path} -> Start the local server, or name another socket.`,
    );
  });

  test("that answers HTTP, and has ended without removing it", async () => {
    const path = join(directory, "site.sock");
    const site = createServer((_, response) => response.writeHead(404).end()).listen(path);
    await once(site, "listening");
    expect(await checkSocket(path)).toBe("ok: it listens and answers HTTP (404) -> null");
    const left = join(directory, "left.sock");
    await rename(path, left);
    site.close();
    expect(await checkSocket(left)).toBe(
      `problem: nothing listens at unix:${left} -> Start the local server, or name another socket.`,
    );
  });

  test("that speaks another protocol", async () => {
    const path = join(directory, "mail.sock");
    const mail = createTcpServer((socket) => {
      // The check closes its first connection at once.
      socket.on("error", () => undefined);
      socket.end("220 smtp.test\r\n");
    });
    mail.listen(path);
    await once(mail, "listening");
    expect(await checkSocket(path)).toBe(
      `problem: it listens, but does not speak HTTP -> For other protocols open a TCP tunnel: underpass tcp unix:${path}`,
    );
    mail.close();
  });
});

describe("the local server", () => {
  const checkLocal = async (local: string) => (await check({ local })).local;

  test("is found on the address that it listens on", async () => {
    await using local = await startHttpServer((_, response) => response.writeHead(404).end());
    expect(formatReport(await checkLocal(String(local.port)))).toBe(
      `ok: it listens on 127.0.0.1:${local.port} and answers HTTP (404) -> null`,
    );
  });

  test("that is missing is a problem, and the command exits with 1", async () => {
    const port = await reservePort();
    const args = ["doctor", String(port), "--server", api.server.url, "--token-file", tokenFile];
    await using agent = await runAgent(args);
    expect(await agent.exit).toBe(1);
    expect(agent.stdout).toMatch(
      new RegExp(
        `^problem +Local server +nothing listens on 127.0.0.1:${port} or \\[::1\\]:${port}$`,
        "m",
      ),
    );
    expect(agent.stdout).toMatch(/^ {4}to do: Start the local server, or check its port\.$/m);
    expect(agent.stdout).toMatch(/\n1 problem; \d+ checks are fine\.\n$/);
  });

  test("that reports an error is a warning", async () => {
    await using local = await startHttpServer((_, response) => response.writeHead(500).end());
    expect((await checkLocal(String(local.port))).status).toBe("warning");
  });

  test("that speaks https, with any certificate, or no HTTP at all, is a problem with the right command", async () => {
    const https = createHttpsServer(createCertificate(), (_, response) => response.end());
    const mail = createTcpServer((socket) =>
      socket.on("error", () => undefined).end("220 mail.example ESMTP\r\n"),
    );
    for (const server of [https, mail]) server.listen(0, "127.0.0.1");
    await Promise.all([once(https, "listening"), once(mail, "listening")]);
    const [httpsPort, mailPort] = [https, mail].map(
      (server) => (server.address() as AddressInfo).port,
    );
    expect(formatReport(await checkLocal(String(httpsPort)))).toContain(
      `speaks https and not http -> Give the agent its URL: underpass http https://localhost:${httpsPort}`,
    );
    expect(formatReport(await checkLocal(`https://localhost:${httpsPort}`))).toContain(
      `its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT) -> Accept the certificate: underpass http https://localhost:${httpsPort} --insecure-upstream`,
    );
    expect(formatReport(await checkLocal(String(mailPort)))).toContain(`underpass tcp ${mailPort}`);
    https.close();
    mail.close();
  });
});
