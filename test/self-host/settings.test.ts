import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { StartError } from "../../self-host/errors.ts";
import { readEnvironment, readSettings } from "../../self-host/settings.ts";

test("without settings, the defaults of a self-hosted server apply", () => {
  expect(readSettings({})).toMatchObject({
    host: "127.0.0.1",
    port: 8787,
    databaseUrl: undefined,
    smtpServer: undefined,
    allowPrivateFetch: false,
    publicPort: undefined,
    metrics: undefined,
    relay: { host: "127.0.0.1", ports: { first: 40_000, last: 40_999 }, bind: "127.0.0.1" },
    apiHosts: ["localhost", "api.localhost", "127.0.0.1"],
    worker: { DEFAULT_PLAN: "enterprise", TRIAL_DAYS: "0", BILLING_MODE: "none" },
  });
});

test("an empty value is the same as an unset one", () => {
  expect(readSettings({ SMTP_URL: "", PORT: " ", DEFAULT_PLAN: "" })).toEqual(readSettings({}));
});

test("the Worker gets only its own settings, without secrets and settings of this process", () => {
  const { worker } = readSettings({
    SERVICE_DOMAIN: "tunnels.example.com",
    RELAY_HOST: "relay.example.com",
    DATABASE_URL: "postgresql://user:password@db/name",
    SMTP_URL: "smtp://mail.example.com",
    ENCRYPTION_KEY: [btoa("k".repeat(32)), btoa("o".repeat(32))].join(", "),
    HOME: "/root",
  });
  expect(worker).toEqual({
    ALLOW_PRIVATE_FETCH: "false",
    BILLING_MODE: "none",
    DEFAULT_PLAN: "enterprise",
    SERVICE_DOMAIN: "tunnels.example.com",
    TRIAL_DAYS: "0",
  });
});

describe("an invalid value prevents the start with a line that names it", () => {
  test.each([
    ["HOST", "not a host"],
    ["HOST", "a:b"],
    ["PORT", "eighty"],
    ["PORT", "1e3"],
    ["PORT", "0x50"],
    ["PORT", "-1"],
    ["PORT", "80.5"],
    ["PUBLIC_PORT", "65536"],
    ["API_HOSTS", ","],
    ["API_HOSTS", "bad host"],
    ["API_HOSTS", "example.com,bad host"],
    ["API_HOSTS", "https://example.com"],
    ["API_HOSTS", "example.com:8787"],
    ["SERVICE_DOMAIN", "-a.example"],
    ["SERVICE_DOMAIN", "a..example"],
    ["TRIAL_DAYS", "1.5"],
    ["TRIAL_DAYS", "366"],
    ["MAX_CONNECTIONS", "0"],
    ["MAX_CONNECTIONS", "1e6"],
    ["MAX_CONNECTIONS_PER_ADDRESS", "many"],
    ["RELAY_PORT_RANGE", "0-10"],
    ["RELAY_PORT_RANGE", "1-70000"],
    ["IDP_A_ISSUER", "https://"],
    ["ENCRYPTION_KEY", "not base64"],
    ["PORT", "65536"],
    ["SERVICE_DOMAIN", "exa mple"],
    ["PUBLIC_SCHEME", "ftp"],
    ["PUBLIC_PORT", "0"],
    ["TRUST_PROXY", "yes"],
    ["HOSTED", "true"],
    ["DATABASE_URL", "mysql://localhost/x"],
    ["DATABASE_URL", "not a url"],
    ["ENCRYPTION_KEY", "dG9vIHNob3J0"],
    ["ENCRYPTION_KEY", `${btoa("k".repeat(32))},dG9vIHNob3J0`],
    ["ENCRYPTION_KEY", `${btoa("k".repeat(32))},`],
    ["SMTP_URL", "http://mail.example.com"],
    ["MAIL_FROM", "x"],
    ["DEFAULT_PLAN", "gold"],
    ["TRIAL_DAYS", "-1"],
    ["BILLING_MODE", "cash"],
    ["PAYMENTS_API_URL", "payments"],
    ["IDP_A_ISSUER", "issuer"],
    ["IDP_B_AUTHORIZE_URL", "authorize"],
    ["IDP_B_TOKEN_URL", "ftp://token"],
    ["IDP_B_API_URL", "api"],
    ["DNS_OVER_HTTPS_URL", "1.1.1.1"],
    ["CF_API_URL", "api"],
    ["CF_ZONE_ID", "../other"],
    ["ALLOW_REPLAY", "1"],
    ["ALLOW_PRIVATE_FETCH", "on"],
    ["AUTH_RATE_LIMIT", "false"],
    ["TRACE_REQUESTS", "some"],
    ["REQUIRE_ORG_APPROVAL", "maybe"],
    ["RELAY_PORT_RANGE", "40000"],
    ["RELAY_PORT_RANGE", "41000-40000"],
    ["RELAY_PORT_RANGE", "40000-40000"],
    ["RELAY_HOST", "a b"],
    ["RELAY_HOST", "https://relay.example.com"],
    ["RELAY_BIND", "eth0:1 x"],
    ["RELAY_URL", "https://relay.example.com"],
    ["RELAY_SECRET", "short"],
    ["METRICS_PORT", "all"],
    ["METRICS_HOST", "not a host"],
    ["METRICS_TOKEN", "short"],
    ["LOCAL_RELAY", "no"],
  ])("%s=%s", (name, value) => {
    const read = () => readSettings({ [name]: value });
    expect(read).toThrow(StartError);
    expect(read).toThrow(new RegExp(`^${name}: [a-z][^\\n]+$`));
    // A person who starts a server reads no regular expressions and no names of the library's types.
    expect(read).not.toThrow(/[\^\\]|regex|pattern|NaN|wrong format/);
  });

  test("a partly configured provider is reported with each missing setting", () => {
    const issuer = { IDP_A_ISSUER: "https://id.example.com" };
    expect(() => readSettings(issuer)).toThrow(
      "IDP_A_CLIENT_ID: must be set as well, because IDP_A_ISSUER is; IDP_A_CLIENT_SECRET: must be set as well, because IDP_A_ISSUER is",
    );
    expect(() => readSettings({ IDP_B_CLIENT_ID: "client" })).toThrow(/IDP_B_TOKEN_URL: /);
    const whole = { ...issuer, IDP_A_CLIENT_ID: "client", IDP_A_CLIENT_SECRET: "secret" };
    expect(readSettings(whole).worker).toMatchObject(whole);
  });

  test("partly configured custom hostnames are reported", () => {
    const zone = { CF_ZONE_ID: "0123456789abcdef0123456789abcdef" };
    expect(() => readSettings(zone)).toThrow(/CF_API_TOKEN: .*CF_ZONE_ID/);
    expect(readSettings({ ...zone, CF_API_TOKEN: "t" }).worker).toMatchObject(zone);
  });

  test("payments without their required settings are reported", () => {
    expect(() => readSettings({ BILLING_MODE: "payments" })).toThrow(/^BILLING_MODE: .*PAYMENTS_/);
    const key = { PAYMENTS_SECRET_KEY: "sk" };
    expect(() => readSettings(key)).toThrow(
      /PAYMENTS_PRICE_TEAM_YEARLY: must be set as well, because PAYMENTS_SECRET_KEY is/,
    );
    const whole = {
      ...key,
      BILLING_MODE: "payments",
      PAYMENTS_WEBHOOK_SECRET: "whsec",
      PAYMENTS_PRICE_PRO_MONTHLY: "price_1",
      PAYMENTS_PRICE_PRO_YEARLY: "price_2",
      PAYMENTS_PRICE_TEAM_MONTHLY: "price_3",
      PAYMENTS_PRICE_TEAM_YEARLY: "price_4",
    };
    expect(readSettings(whole).worker).toMatchObject(whole);
  });

  test("a mail server with a time limit out of range is reported with the range", () => {
    const read = () => readSettings({ SMTP_URL: "smtp://mail.example.com?timeout=60" });
    expect(read).toThrow(/^SMTP_URL: .*1 to 25 seconds/);
  });

  test("two invalid values are both reported", () => {
    expect(() => readSettings({ PORT: "x", TRUST_PROXY: "y" })).toThrow(/TRUST_PROXY: .*PORT: /);
  });
});

test("the environment takes precedence over a file, and a missing file is ignored", async () => {
  const dir = await mkdtemp(join(tmpdir(), "underpass-test-"));
  const file = join(dir, ".env");
  await writeFile(file, "UNDERPASS_TEST_A=file\nPATH=file\n# comment\nQUOTED='a b'\n");
  const environment = readEnvironment(file, join(dir, "missing"));
  expect(environment).toMatchObject({ UNDERPASS_TEST_A: "file", QUOTED: "a b" });
  expect(environment.PATH).toBe(process.env.PATH);
  await rm(dir, { recursive: true });
});

describe("HTTPS", () => {
  const files = { HTTPS_CERTIFICATE_FILE: "cert.pem", HTTPS_KEY_FILE: "/etc/key.pem" };

  test("makes public URLs begin with https, unless the operator says otherwise", () => {
    const settings = { HTTPS_PORT: "443", ...files };
    expect(readSettings(settings)).toMatchObject({
      publicScheme: "https",
      worker: { PUBLIC_SCHEME: "https" },
      https: {
        port: 443,
        host: undefined,
        files: { certificateFile: join(process.cwd(), "cert.pem"), keyFile: "/etc/key.pem" },
        acme: undefined,
      },
    });
    expect(readSettings({ ...settings, PUBLIC_SCHEME: "http" }).publicScheme).toBe("http");
    expect(readSettings({}).https).toBeUndefined();
  });

  test("orders certificates from Let's Encrypt unless another authority is named", () => {
    const settings = { HTTPS_PORT: "443", HTTP_REDIRECT_PORT: "80", ACME: "on" };
    expect(readSettings(settings).https).toMatchObject({
      files: undefined,
      redirectPort: 80,
      acme: { directoryUrl: "https://acme-v02.api.letsencrypt.org/directory", email: null },
    });
  });

  test("may use the same port as plain HTTP at another address, or any free one", () => {
    const ports = { PORT: "443", HTTPS_PORT: "443", HTTPS_HOST: "192.0.2.1" };
    expect(readSettings({ ...files, ...ports }).https?.port).toBe(443);
    expect(readSettings({ ...files, PORT: "0", HTTPS_PORT: "0" }).https?.port).toBe(0);
  });

  test.each([
    [{ HTTPS_PORT: "443" }, /HTTPS_PORT: requires ACME=on, or HTTPS_CERTIFICATE_FILE/],
    [{ HTTPS_PORT: "443", HTTPS_KEY_FILE: "key.pem" }, /HTTPS_KEY_FILE: must be set together/],
    [{ HTTPS_PORT: "443", ACME: "on" }, /HTTP_REDIRECT_PORT: must be set as well/],
    [{ HTTPS_PORT: "443", ...files, TRUST_PROXY: "true" }, /TRUST_PROXY: must not be true/],
    [{ HTTPS_PORT: "80", ...files, HTTP_REDIRECT_PORT: "80" }, /HTTP_REDIRECT_PORT: must differ/],
    [{ PORT: "443", HTTPS_PORT: "443", ...files }, /HTTPS_PORT: must differ from PORT/],
    [
      { HOST: "0.0.0.0", PORT: "443", HTTPS_HOST: "192.0.2.1", HTTPS_PORT: "443", ...files },
      /HTTPS_PORT: must differ from PORT/,
    ],
    [
      { HTTPS_PORT: "443", ...files, HTTP_REDIRECT_PORT: "8787" },
      /HTTP_REDIRECT_PORT: must differ from PORT/,
    ],
    [files, /HTTPS_CERTIFICATE_FILE: has no effect without HTTPS_PORT/],
    [{ ACME: "on" }, /ACME: has no effect without HTTPS_PORT/],
  ])("refuses %j", (settings, message) => {
    expect(() => readSettings(settings)).toThrow(message);
  });
});
