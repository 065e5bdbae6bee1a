/** `underpass doctor` behind networks and servers of which each breaks one thing. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Report } from "../../../../agent/doctor/check.ts";
import { TrustedAuthorities } from "../../../../agent/outgoing/trusted-authorities.ts";
import { SERVICE_VERSION } from "../../../../protocol/version.ts";
import { DAY_MS, HOUR_MS } from "../../../../shared/time.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { createCertificate, type Certificate } from "../../../harness/fakes/certificate.ts";
import { startConnectProxy } from "../../../harness/fakes/connect-proxy.ts";
import { startHttpServer } from "../../../harness/fakes/http-server.ts";
import { startMiddlebox } from "../../../harness/fakes/middlebox.ts";
import { reservePort } from "../../../harness/ports.ts";
import { mintToken, startApi, type TestApi } from "../../../harness/server/api.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";
import { diagnose, formatReport, pickChecks, saveToken } from "../../../harness/agent/diagnosis.ts";

let api: TestApi;
let directory: string;
let tokenFile: string;
let authority: Certificate;
let systemAuthorities: string[];

beforeAll(async () => {
  [api, directory] = await Promise.all([startApi(), createTemporaryDir()]);
  const { wireBytes } = await mintToken(await api.owner());
  tokenFile = await saveToken(directory, "token", Buffer.from(wireBytes, "base64"));
  authority = createCertificate({ commonName: "Test Authority" });
  systemAuthorities = getCACertificates("default");
});
afterAll(async () => {
  setDefaultCACertificates(systemAuthorities);
  await api.stop();
});
afterEach(() => vi.unstubAllEnvs());

const check = (server = api.server.url, authorities?: TrustedAuthorities) =>
  diagnose({ server, tokenFile, authorities });

describe("the network", () => {
  test("a refused port is reported, and later checks are skipped with the reason", async () => {
    const diagnosis = await check(`http://127.0.0.1:${await reservePort()}`);
    expect(pickChecks(diagnosis, "problem")).toEqual(["tcp"]);
    expect(formatReport(diagnosis.tcp)).toMatch(
      /127\.0\.0\.1 refuses connections -> Nothing listens/,
    );
    expect(diagnosis.http).toMatchObject({
      status: "skipped",
      result: "the server accepts no connection",
    });
    expect(diagnosis.throughput.result).toBe("the server accepts no connection");
  });

  test("a name that does not exist is reported", async () => {
    const diagnosis = await check("https://underpass.invalid");
    expect(pickChecks(diagnosis, "problem")).toEqual(["dns"]);
    expect(diagnosis.tcp.result).toBe("the server's name leads to no address");
  });
});

describe("TLS", () => {
  const startTls = (certificate: Certificate) => startMiddlebox(api.server.port, { certificate });

  test("a certificate of a company's own CA is reported with the issuer's name, and accepted once it is trusted", async () => {
    const inspection = createCertificate({ commonName: "Example Corp Inspection CA" });
    const validToMs = Date.now() + 30 * DAY_MS;
    await using box = await startTls(createCertificate({ issuer: inspection, validToMs }));
    const diagnosis = await check(box.url);
    expect(pickChecks(diagnosis, "problem")).toEqual(["tls"]);
    expect(formatReport(diagnosis.tls)).toMatch(
      /issued by "Example Corp Inspection CA", which this machine does not trust.*pass --ca-file/,
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
    const given = await check(box.url, new TrustedAuthorities([inspection.cert]));
    expect(given.tls.result).toContain("trusted through --ca-file");
    const other = await check(box.url, new TrustedAuthorities([authority.cert]));
    expect(formatReport(other.tls)).toMatch(
      /does not trust.*-> The file of --ca-file has another CA/,
    );
  });

  test.each([
    ["expired", { validToMs: Date.now() - HOUR_MS }, / expired on .* -> The operator/],
    ["not yet valid", { validFromMs: Date.now() + HOUR_MS }, /valid only from .*clock/],
    [
      "for another name",
      { commonName: "other.example" },
      /the certificate is for other\.example, not for localhost/,
    ],
  ])("a certificate that is %s is reported", async (_, options, expected) => {
    setDefaultCACertificates([...systemAuthorities, authority.cert]);
    await using box = await startTls(createCertificate({ ...options, issuer: authority }));
    const diagnosis = await check(box.url);
    expect(pickChecks(diagnosis, "problem")).toEqual(["tls"]);
    expect(formatReport(diagnosis.tls)).toMatch(expected);
  });

  test("a valid certificate is ok, and one that expires soon a warning", async () => {
    setDefaultCACertificates([...systemAuthorities, authority.cert]);
    const lasting = createCertificate({ issuer: authority, validToMs: Date.now() + 30 * DAY_MS });
    await using good = await startTls(lasting);
    expect(pickChecks(await check(good.url), "problem")).toEqual([]);
    await using late = await startTls(createCertificate({ issuer: authority }));
    expect((await check(late.url)).tls.status).toBe("warning");
  });

  test("a server that does not speak TLS is reported", async () => {
    await using plain = await startHttpServer((_, response) => response.end());
    const { tls } = await check(`https://localhost:${plain.port}`);
    expect(formatReport(tls)).toMatch(/does not speak TLS -> .*http:\/\/localhost/);
  });
});

describe("a proxy of the environment", () => {
  const useProxy = (port: number, credentials = "") =>
    vi.stubEnv("HTTP_PROXY", `http://${credentials}127.0.0.1:${port}`);

  test("that works carries every check, also to names that only the proxy can resolve", async () => {
    await using proxy = await startConnectProxy();
    useProxy(proxy.port);
    const diagnosis = await check(`http://localhost:${api.server.port}`);
    expect(pickChecks(diagnosis, "problem")).toEqual([]);
    expect(diagnosis.dns.result).toBe("the proxy resolves the server's name");
    expect(diagnosis.websocket.status).toBe("ok");
    const unresolvable = await check(`http://tunnel.invalid:${api.server.port}`);
    expect(unresolvable.dns.status).toBe("skipped");
    expect(unresolvable.proxy.status).toBe("ok");
  });

  test.each([
    ["407 Proxy Authentication Required", "", /requires a user name and a password \(407\) -> Add/],
    ["407 Proxy Authentication Required", "ada:secret@", /does not accept the user name and pass/],
    ["403 Forbidden", "", /does not allow connections to .* -> Ask its administrator/],
    ["502 Bad Gateway", "", /can't reach .* \(502\)/],
  ])("that answers %s (%s) is reported", async (refusal, credentials, expected) => {
    await using proxy = await startConnectProxy({ refusal });
    useProxy(proxy.port, credentials);
    const diagnosis = await check();
    expect(pickChecks(diagnosis, "problem")).toEqual(["proxy"]);
    expect(formatReport(diagnosis.proxy)).toMatch(expected);
    expect(JSON.stringify(diagnosis)).not.toContain("secret");
    expect(proxy.credentials[0] === undefined).toBe(credentials === "");
  });

  test("that does not run, is of another kind or excluded is reported", async () => {
    useProxy(await reservePort());
    expect(formatReport((await check()).proxy)).toMatch(
      /refuses connections -> Correct HTTP_PROXY/,
    );
    vi.stubEnv("NO_PROXY", "127.0.0.1");
    const excluded = await check();
    expect(excluded.proxy.result).toContain("HTTP_PROXY is set, but NO_PROXY excludes this server");
    expect(pickChecks(excluded, "problem")).toEqual([]);
    vi.unstubAllEnvs();
    vi.stubEnv("HTTP_PROXY", "socks5://127.0.0.1:1080");
    expect(formatReport((await check()).proxy)).toMatch(
      /kind socks5, which the agent does not sup/,
    );
  });
});

describe("a middlebox", () => {
  test("that removes the Upgrade header is reported", async () => {
    await using box = await startMiddlebox(api.server.port, { stripsUpgrade: true });
    const diagnosis = await check(box.url);
    expect(pickChecks(diagnosis, "problem")).toEqual(["websocket"]);
    expect(formatReport(diagnosis.websocket)).toMatch(
      /without its Upgrade header \(426\): a proxy on the way removes it -> .*allow them to localhost/,
    );
    expect(diagnosis.throughput.result).toBe("no WebSocket can be opened");
  });

  test("that answers instead of opening a WebSocket is reported with the beginning of its answer", async () => {
    const refuseUpgrade = () =>
      "HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n<h1>Blocked by the firewall</h1>";
    await using box = await startMiddlebox(api.server.port, { refuseUpgrade });
    const { websocket } = await check(box.url);
    expect(formatReport(websocket)).toMatch(
      /^problem: something on the way answers 403.*"Blocked by/,
    );
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
  ])("that answers everything %s is reported", async (_, status, headers, body, expected) => {
    await using box = await startMiddlebox(api.server.port, {
      answer(_request, response) {
        response.writeHead(status, headers).end(body);
        return true;
      },
    });
    const diagnosis = await check(box.url);
    expect(pickChecks(diagnosis, "problem")).toEqual(["http"]);
    expect(formatReport(diagnosis.http)).toMatch(expected);
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
    expect(formatReport((await check(ahead.url)).clock)).toMatch(
      /^warning: this machine's clock is 10 minutes behind the server's -> Set this/,
    );
    await using behind = await shiftDate(-90_000);
    expect((await check(behind.url)).clock.result).toMatch(/9[01] s ahead of/);
  });

  test("whose server has another version is a warning that says which one to update", async () => {
    const setVersion = (version: string) =>
      startMiddlebox(api.server.port, {
        change: (_headers, body) => body.replace(SERVICE_VERSION, version),
      });
    await using newer = await setVersion("99.1.0");
    expect(formatReport((await check(newer.url)).version)).toMatch(
      /^warning: .*server 99\.1\.0.* -> Update the agent/,
    );
    await using older = await setVersion("0.1.0");
    expect(formatReport((await check(older.url)).version)).toMatch(
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
    const diagnosis = await check(box.url);
    expect(pickChecks(diagnosis, "problem")).toEqual([]);
    expect(diagnosis.websocket.status).toBe("ok");
    expect(pickChecks(diagnosis, "skipped")).toEqual(
      expect.arrayContaining(["token", "throughput"]),
    );
  });
});
