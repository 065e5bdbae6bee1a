/** `underpass doctor` on a working server, and behind networks and servers of which each breaks one thing. */
import { chmod, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { createServer as createHttpsServer } from "node:https";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { CheckName, Report } from "../../../agent/doctor/check.ts";
import { startChecks } from "../../../agent/doctor/doctor.ts";
import { parseTarget } from "../../../agent/target.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import { ROOT } from "../../../self-host/build/build.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { createCertificate, type Certificate } from "../../harness/fakes/certificate.ts";
import { startHttpServer } from "../../harness/fakes/listening.ts";
import { reservePort } from "../../harness/ports.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { canOpenTerminals, typeCommand } from "../../harness/terminal.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { startMiddlebox } from "../../harness/tunnel/middlebox.ts";

const DAY_MS = 24 * 3600_000;

let api: TestApi;
let owner: Person;
let token: Buffer;
let directory: string;
let tokenFile: string;
let authority: Certificate;
let systemAuthorities: string[];

beforeAll(async () => {
  [api, directory] = await Promise.all([startApi(), createTemporaryDir()]);
  owner = await api.owner();
  token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
  tokenFile = await saveToken("token", token);
  authority = createCertificate({ commonName: "Test Authority" });
  systemAuthorities = getCACertificates("default");
});
afterAll(async () => {
  setDefaultCACertificates(systemAuthorities);
  await api.stop();
});
afterEach(() => vi.unstubAllEnvs());

async function saveToken(name: string, bytes: Uint8Array): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, bytes, { mode: 0o600 });
  return path;
}

type Diagnosis = Record<CheckName, Report>;

async function diagnose(
  options: { server?: string; tokenFile?: string; local?: string } = {},
): Promise<Diagnosis> {
  const target =
    options.local === undefined ? undefined : (parseTarget(options.local) ?? undefined);
  const server = options.server ?? api.server.url;
  const checks = startChecks({ target, server, tokenFile: options.tokenFile ?? tokenFile });
  const reports = await Promise.all(checks);
  return Object.fromEntries(reports.map((report) => [report.check, report])) as Diagnosis;
}

const summarize = ({ status, result, advice }: Report) => `${status}: ${result} -> ${advice}`;

/** The names of the checks with this status. */
const pick = (diagnosis: Diagnosis, status: Report["status"]) =>
  Object.values(diagnosis).flatMap((report) => (report.status === status ? report.check : []));

describe("on a working setup", () => {
  test("every check is ok, and the command exits with 0 and never prints the token", async () => {
    const args = ["doctor", String(api.server.port), "--server", api.server.url];
    await using agent = await runAgent([...args, "--token-file", "TOKEN", "--json"], { token });
    await chmodToken(agent.child.spawnargs);
    expect([await agent.exit, agent.stderr]).toEqual([0, ""]);
    const reports = JSON.parse(agent.stdout) as Report[];
    const notOk = reports.filter(({ status }) => status !== "ok").map(({ check }) => check);
    // The server is given by its address and speaks http. The harness writes its token file for all users to read.
    expect(notOk.filter((check) => check !== "settings")).toEqual(["dns", "tls"]);
    for (const report of reports) {
      expect(Object.keys(report)).toEqual(["check", "status", "tried", "result", "advice"]);
    }
    const find = (check: CheckName) => reports.find((report) => report.check === check)?.result;
    expect(find("token")).toContain('"test" of the organization');
    expect(find("throughput")).toMatch(/^\d+ Mbit\/s from the server, \d+ Mbit\/s to the server$/);
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
    expect(piped.stdout).toMatch(/\n\nEverything works\.\n$/);
    skip(!canOpenTerminals(), "there is no script(1) of util-linux here to open a terminal with");
    const command = `${process.execPath} ${join(ROOT, "agent/dist/underpass.js")} ${args.join(" ")}`;
    await using shown = typeCommand(command, { cwd: directory, atTerminal: true });
    expect(await shown.exit).toBe(0);
    expect(shown.output).toMatch(/^✓ WebSocket +it opens/m);
  });

  test("it leaves no tunnel behind", async () => {
    const alone = await api.owner();
    const { wireBytes } = await mintToken(alone);
    await diagnose({ tokenFile: await saveToken("alone", Buffer.from(wireBytes, "base64")) });
    expect((await alone.get("/tunnels")).body).toEqual([]);
  });
});

/** Windows has no such permissions, and the command reads the file only after its start. */
async function chmodToken(args: string[]): Promise<void> {
  const path = args.at(args.indexOf("--token-file") + 1);
  if (path !== undefined) await chmod(path, 0o600);
}

describe("settings", () => {
  test.runIf(process.platform !== "win32")(
    "a token file that others can read is a warning",
    async () => {
      const path = await saveToken("open", token);
      await chmod(path, 0o644);
      const { settings } = await diagnose({ tokenFile: path });
      expect(summarize(settings)).toMatch(/^warning: .*other users.* -> Run: chmod 600 /);
    },
  );

  test("without a token the WebSocket is still tried, and the way to get one is named", async () => {
    vi.stubEnv("XDG_CONFIG_HOME", directory);
    const checks = startChecks({ target: undefined, server: api.server.url, tokenFile: undefined });
    const reports = await Promise.all(checks);
    const find = (check: CheckName) => reports.find((report) => report.check === check)!;
    expect(find("settings").advice).toBe(`Run: underpass login --server ${api.server.url}`);
    expect(summarize(find("websocket"))).toBe(
      "ok: it opens, and the server's message arrives -> null",
    );
    expect(find("token").status).toBe("skipped");
    expect(reports.filter(({ status }) => status === "problem")).toEqual([]);
  });

  test("a server address that is none ends the checks of the server", async () => {
    const diagnosis = await diagnose({ server: "ftp://files.example" });
    expect(pick(diagnosis, "problem")).toEqual(["settings"]);
    expect(diagnosis.token.result).toBe("there is no server to reach");
  });
});

describe("the network", () => {
  test("a refused port is told, and later checks are skipped with the reason", async () => {
    const diagnosis = await diagnose({ server: `http://127.0.0.1:${await reservePort()}` });
    expect(pick(diagnosis, "problem")).toEqual(["tcp"]);
    expect(summarize(diagnosis.tcp)).toMatch(/127\.0\.0\.1 refuses connections -> Nothing listens/);
    expect(diagnosis.http).toMatchObject({
      status: "skipped",
      result: "the server accepts no connection",
    });
    expect(diagnosis.throughput.result).toBe("the server accepts no connection");
  });

  test("a name that does not exist is told", async () => {
    const diagnosis = await diagnose({ server: "https://underpass.invalid" });
    expect(pick(diagnosis, "problem")).toEqual(["dns"]);
    expect(diagnosis.tcp.result).toBe("the server's name leads to no address");
  });
});

describe("TLS", () => {
  const startTls = (certificate: Certificate) => startMiddlebox(api.server.port, { certificate });

  test("a certificate of a company's own CA is told by the issuer's name, and accepted once it is trusted", async () => {
    const inspection = createCertificate({ commonName: "Example Corp Inspection CA" });
    const validToMs = Date.now() + 30 * DAY_MS;
    await using box = await startTls(createCertificate({ issuer: inspection, validToMs }));
    const diagnosis = await diagnose({ server: box.url });
    expect(pick(diagnosis, "problem")).toEqual(["tls"]);
    expect(summarize(diagnosis.tls)).toMatch(
      /issued by "Example Corp Inspection CA", which this machine does not trust.*NODE_EXTRA_CA_CERTS/,
    );
    const file = join(directory, "inspection.pem");
    await writeFile(file, inspection.cert);
    const args = ["doctor", "--server", box.url, "--token-file", tokenFile, "--json"];
    await using agent = await runAgent(args, { env: { NODE_EXTRA_CA_CERTS: file } });
    expect(await agent.exit).toBe(0);
    const tls = (JSON.parse(agent.stdout) as Report[]).find(({ check }) => check === "tls");
    expect(tls).toMatchObject({ status: "ok" });
    expect(tls?.result).toContain('"Example Corp Inspection CA"');
    expect(tls?.result).toContain("trusted through NODE_EXTRA_CA_CERTS");
  });

  test.each([
    ["expired", { validToMs: Date.now() - 3600_000 }, /has expired on .* -> The operator/],
    ["not yet valid", { validFromMs: Date.now() + 3600_000 }, /valid only from .*clock/],
    [
      "for another name",
      { commonName: "other.example" },
      /the certificate is for other\.example, not for localhost/,
    ],
  ])("a certificate that is %s is told", async (_, options, expected) => {
    setDefaultCACertificates([...systemAuthorities, authority.cert]);
    await using box = await startTls(createCertificate({ ...options, issuer: authority }));
    const diagnosis = await diagnose({ server: box.url });
    expect(pick(diagnosis, "problem")).toEqual(["tls"]);
    expect(summarize(diagnosis.tls)).toMatch(expected);
  });

  test("a valid certificate is ok, and one that expires soon a warning", async () => {
    setDefaultCACertificates([...systemAuthorities, authority.cert]);
    const lasting = createCertificate({ issuer: authority, validToMs: Date.now() + 30 * DAY_MS });
    await using good = await startTls(lasting);
    expect(pick(await diagnose({ server: good.url }), "problem")).toEqual([]);
    await using late = await startTls(createCertificate({ issuer: authority }));
    expect((await diagnose({ server: late.url })).tls.status).toBe("warning");
  });

  test("a server that does not speak TLS is told", async () => {
    await using plain = await startHttpServer((_, response) => response.end());
    const { tls } = await diagnose({ server: `https://localhost:${plain.port}` });
    expect(summarize(tls)).toMatch(/does not speak TLS -> .*http:\/\/localhost/);
  });
});

describe("a proxy of the environment", () => {
  async function startProxy(refusal?: string) {
    const sockets = new Set<Socket>();
    const seen: (string | undefined)[] = [];
    const proxy = createHttpServer();
    proxy.on("connect", ({ url = "", headers }, near: Socket) => {
      sockets.add(near);
      seen.push(headers["proxy-authorization"]);
      near.on("error", () => undefined);
      if (refusal !== undefined) return void near.end(`HTTP/1.1 ${refusal}\r\n\r\n`);
      const far = connect(Number(url.split(":").at(-1)), "127.0.0.1", () =>
        near.write("HTTP/1.1 200 OK\r\n\r\n"),
      );
      sockets.add(far);
      far.on("error", () => undefined);
      near.pipe(far).pipe(near);
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    return {
      seen,
      port: (proxy.address() as AddressInfo).port,
      async [Symbol.asyncDispose]() {
        for (const socket of sockets) socket.destroy();
        proxy.close();
        await once(proxy, "close");
      },
    };
  }
  const useProxy = (port: number, credentials = "") =>
    vi.stubEnv("HTTP_PROXY", `http://${credentials}127.0.0.1:${port}`);

  test("that works carries every check, also to names that only the proxy can resolve", async () => {
    await using proxy = await startProxy();
    useProxy(proxy.port);
    const diagnosis = await diagnose({ server: `http://localhost:${api.server.port}` });
    expect(pick(diagnosis, "problem")).toEqual([]);
    expect(diagnosis.dns.result).toBe("the proxy resolves the server's name");
    expect(diagnosis.websocket.status).toBe("ok");
    const unresolvable = await diagnose({ server: `http://tunnel.invalid:${api.server.port}` });
    expect(unresolvable.dns.status).toBe("skipped");
    expect(unresolvable.proxy.status).toBe("ok");
  });

  test.each([
    ["407 Proxy Authentication Required", "", /requires a user name and a password \(407\) -> Add/],
    ["407 Proxy Authentication Required", "ada:secret@", /does not accept the user name and pass/],
    ["403 Forbidden", "", /does not allow connections to .* -> Ask its administrator/],
    ["502 Bad Gateway", "", /can't reach .* \(502\)/],
  ])("that answers %s (%s) is told", async (refusal, credentials, expected) => {
    await using proxy = await startProxy(refusal);
    useProxy(proxy.port, credentials);
    const diagnosis = await diagnose();
    expect(pick(diagnosis, "problem")).toEqual(["proxy"]);
    expect(summarize(diagnosis.proxy)).toMatch(expected);
    expect(JSON.stringify(diagnosis)).not.toContain("secret");
    expect(proxy.seen[0] === undefined).toBe(credentials === "");
  });

  test("that does not run, is of another kind or excluded is told", async () => {
    useProxy(await reservePort());
    expect(summarize((await diagnose()).proxy)).toMatch(
      /refuses connections -> Correct HTTP_PROXY/,
    );
    vi.stubEnv("NO_PROXY", "127.0.0.1");
    const excluded = await diagnose();
    expect(excluded.proxy.result).toContain("HTTP_PROXY is set, but NO_PROXY excludes this server");
    expect(pick(excluded, "problem")).toEqual([]);
    vi.unstubAllEnvs();
    vi.stubEnv("HTTP_PROXY", "socks5://127.0.0.1:1080");
    expect(summarize((await diagnose()).proxy)).toMatch(
      /kind socks5, which the agent does not sup/,
    );
  });
});

describe("a middlebox", () => {
  test("that removes the Upgrade header is told", async () => {
    await using box = await startMiddlebox(api.server.port, { stripsUpgrade: true });
    const diagnosis = await diagnose({ server: box.url });
    expect(pick(diagnosis, "problem")).toEqual(["websocket"]);
    expect(summarize(diagnosis.websocket)).toMatch(
      /without its Upgrade header \(426\): a proxy on the way removes it -> .*allow them to localhost/,
    );
    expect(diagnosis.throughput.result).toBe("no WebSocket can be opened");
  });

  test("that answers instead of opening a WebSocket is told with its answer's beginning", async () => {
    const refuseUpgrade = () =>
      "HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n<h1>Blocked by the firewall</h1>";
    await using box = await startMiddlebox(api.server.port, { refuseUpgrade });
    const { websocket } = await diagnose({ server: box.url });
    expect(summarize(websocket)).toMatch(/^problem: something on the way answers 403.*"Blocked by/);
  });

  test.each<[string, number, Record<string, string>, string, RegExp]>([
    [
      "with its login page",
      200,
      { "content-type": "text/html" },
      "<html><title>Café Wi-Fi</title>",
      /a web page answers instead of the API \(200\): "Café Wi-Fi" -> .*log in/,
    ],
    [
      "with a redirect to its login page",
      302,
      { location: "http://login.cafe.example/?next=1" },
      "",
      /a login page of this network answers \(302 and leads to http:\/\/login\.cafe/,
    ],
    [
      "as another web server",
      404,
      { "content-type": "application/json" },
      '{"detail":"Not Found"}',
      /this is not an Underpass server: it answers 404/,
    ],
    [
      "as a gateway whose server is down",
      502,
      { "content-type": "text/plain" },
      "Bad Gateway",
      /the server answers 502: "Bad Gateway" -> Try again/,
    ],
  ])("that answers everything %s is told", async (_, status, headers, body, expected) => {
    await using box = await startMiddlebox(api.server.port, {
      answer(_request, response) {
        response.writeHead(status, headers).end(body);
        return true;
      },
    });
    const diagnosis = await diagnose({ server: box.url });
    expect(pick(diagnosis, "problem")).toEqual(["http"]);
    expect(summarize(diagnosis.http)).toMatch(expected);
    expect(diagnosis.latency.result).toBe("the server's API does not answer");
  });

  test("with another clock is a warning", async () => {
    const shiftDate = (byMs: number) =>
      startMiddlebox(api.server.port, {
        change(headers, body) {
          headers["date"] = new Date(Date.now() + byMs).toUTCString();
          return body;
        },
      });
    await using ahead = await shiftDate(10 * 60_000);
    expect(summarize((await diagnose({ server: ahead.url })).clock)).toMatch(
      /^warning: this machine's clock is 10 minutes behind the server's -> Set this/,
    );
    await using behind = await shiftDate(-90_000);
    expect((await diagnose({ server: behind.url })).clock.result).toMatch(/9[01] s ahead of/);
  });

  test("whose server has another version is a warning that says which one to update", async () => {
    const setVersion = (version: string) =>
      startMiddlebox(api.server.port, {
        change: (_headers, body) => body.replace(SERVICE_VERSION, version),
      });
    await using newer = await setVersion("99.1.0");
    expect(summarize((await diagnose({ server: newer.url })).version)).toMatch(
      /^warning: .*server 99\.1\.0.* -> Update the agent/,
    );
    await using older = await setVersion("0.1.0");
    expect(summarize((await diagnose({ server: older.url })).version)).toMatch(
      /^warning: .*server 0\.1\.0.* -> The server is older/,
    );
  });

  test("whose server does not know diagnostic connections gets the upgrade of an agent", async () => {
    const unknown = { error: "not_found", message: "There is no route at this path." };
    await using box = await startMiddlebox(api.server.port, {
      answer({ url }, response) {
        if (url !== "/agent/token") return false;
        response.writeHead(404, { "content-type": "application/json" });
        response.end(JSON.stringify(unknown));
        return true;
      },
      refuseUpgrade: (path) =>
        path === "/agent/diagnostics"
          ? "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
          : undefined,
    });
    const diagnosis = await diagnose({ server: box.url });
    expect(pick(diagnosis, "problem")).toEqual([]);
    expect(diagnosis.websocket.status).toBe("ok");
    expect(pick(diagnosis, "skipped")).toEqual(expect.arrayContaining(["token", "throughput"]));
  });
});

describe("the token", () => {
  const mint = async (scope: object, by = owner) => {
    const { nonce, wireBytes } = await mintToken(by, scope);
    return { nonce, file: await saveToken(nonce, Buffer.from(wireBytes, "base64")) };
  };

  test("is described with its restrictions and its budget", async () => {
    const { nonce, file } = await mint({ allowedSubdomains: ["shop-*"], tunnelQuota: 2 });
    await owner.put(`/tokens/${nonce}/budget`, { monthlyBudgetUsdCents: 500 });
    const { result } = (await diagnose({ tokenFile: file })).token;
    expect(result).toContain("for shop-*, 2 tunnels at once");
    expect(result).toContain("$0.00 of $5.00 spent this month");
  });

  test("that is revoked is told, and the WebSocket is not blamed", async () => {
    const { nonce, file } = await mint({});
    await owner.delete(`/tokens/${nonce}`);
    const diagnosis = await diagnose({ tokenFile: file });
    expect(pick(diagnosis, "problem")).toEqual(["token"]);
    expect(summarize(diagnosis.token)).toMatch(/The token was revoked\. -> Get a new one: under/);
    expect(diagnosis.throughput.status).toBe("skipped");
  });

  test("whose budget is used up is told", async () => {
    const { nonce, file } = await mint({});
    await owner.put(`/tokens/${nonce}/budget`, { monthlyBudgetUsdCents: 0 });
    const diagnosis = await diagnose({ tokenFile: file });
    expect(summarize(diagnosis.token)).toMatch(/^problem: .*budget is used up -> An owner/);
  });
});

describe("the local server", () => {
  const check = async (local: string) => (await diagnose({ local })).local;

  test("is found on the address that it listens on", async () => {
    await using local = await startHttpServer((_, response) => response.writeHead(404).end());
    expect(summarize(await check(String(local.port)))).toBe(
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
    expect((await check(String(local.port))).status).toBe("warning");
  });

  test("that speaks https, or no HTTP at all, is a problem with the right command", async () => {
    const https = createHttpsServer(createCertificate(), (_, response) => response.end());
    const mail = createTcpServer((socket) =>
      socket.on("error", () => undefined).end("220 mail.example ESMTP\r\n"),
    );
    for (const server of [https, mail]) server.listen(0, "127.0.0.1");
    await Promise.all([once(https, "listening"), once(mail, "listening")]);
    const [httpsPort, mailPort] = [https, mail].map(
      (server) => (server.address() as AddressInfo).port,
    );
    expect(summarize(await check(String(httpsPort)))).toContain(
      `speaks https and not http -> Give the agent its URL: underpass http https://localhost:${httpsPort}`,
    );
    expect(summarize(await check(String(mailPort)))).toContain(`underpass tcp ${mailPort}`);
    https.close();
    mail.close();
  });
});
