/** Replacing keys while everything that the earlier ones created is still in use. */
import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { decodeProtectedHeader, type JWK } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Receiver } from "../../protocol/schemas/webhooks.ts";
import { CLOSE } from "../../protocol/wire/close-codes.ts";
import type { Config } from "../../workers/config/config.ts";
import { getCurrentKeyPrefix, encrypt, decrypt } from "../../workers/identity/encryption.ts";
import { TOTP_SECRET_PURPOSE } from "../../workers/identity/accounts/totp.ts";
import {
  createCaller,
  getFirstCookie,
  mintToken,
  newEmail,
  PASSWORD,
  startApi,
  waitForBlockedStatement,
  waitUntil,
  type Person,
  type TestApi,
} from "../harness/server/api.ts";
import { NODE_ENVIRONMENT } from "../harness/node-environment.ts";
import { createPreparedDir } from "../harness/directories.ts";
import { startExpectingFailure } from "../harness/server/server.ts";
import { deliver, createReceiver } from "../harness/fakes/vendor.ts";

const SECRETS = ["ENCRYPTION_KEY", "JWT_PRIVATE_KEY", "TOKEN_SIGNING_KEY"] as const;
const SEED = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const run = promisify(execFile);

/** Changes all three secrets with the script in docs/operators/operations.md. Without npm, whose start takes a second. */
async function changeKeys(dataDir: string, change: "rotate" | "retire"): Promise<void> {
  for (const name of SECRETS) {
    const env = { ...NODE_ENVIRONMENT, DATA_DIR: dataDir };
    await run(process.execPath, ["--run", "secret", "--", name, change], { env });
  }
}

async function readEncryptionKeys(dataDir: string): Promise<string[]> {
  const secrets = await readFile(join(dataDir, "secrets.json"), "utf8");
  return (JSON.parse(secrets) as { ENCRYPTION_KEY: string }).ENCRYPTION_KEY.split(",");
}

const configWithKeys = (keys: string[]) => ({ ENCRYPTION_KEY: keys }) as Config;

interface FirstKeysData {
  /** The port of every start, because access tokens contain the address of the service. */
  env: { PORT: string };
  owner: Person;
  /** Cookies of another session: the second one replaced the first. */
  tabs: { first: string; second: string };
  /** Cookies of two more sessions. */
  idle: { renewed: string; unused: string };
  /** A person who has signed up and not entered the code yet. */
  newUser: { email: string; code: string };
  capability: string;
  /** A receiver with one delivery. */
  receiver: Receiver;
  /** A receiver whose replaced secret is still accepted. */
  rotated: Receiver;
  keyId: string | undefined;
  encryptionKey: string;
}

/** Creates one object of every kind that depends on a key. */
async function useFirstKeys(dataDir: string): Promise<FirstKeysData> {
  await using api = await startApi({ dataDir });
  const owner = await api.owner();
  const email = newEmail();
  await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  const newUser = { email, code: await api.getMailedCode(email) };
  const [encryptionKey = ""] = await readEncryptionKeys(dataDir);
  const config = configWithKeys([encryptionKey]);
  await api.sql("update users set mfa_secret = $1 where email = $2", [
    await encrypt(config, TOTP_SECRET_PURPOSE, SEED),
    email,
  ]);
  const mail = {
    to: "waiting@example.com",
    subject: "Encrypted before",
    text: "text",
    html: "html",
  };
  const payload = { sealed: await encrypt(config, "mail", JSON.stringify(mail)) };
  await api.sql("insert into outbox (kind, payload) values ('mail', $1::jsonb)", [
    JSON.stringify(payload),
  ]);
  const { cookie: first } = await api.logIn(owner.email, PASSWORD);
  const second = getFirstCookie((await refresh(api, first)).headers);
  const idle = {
    renewed: (await api.logIn(owner.email, PASSWORD)).cookie,
    unused: (await api.logIn(owner.email, PASSWORD)).cookie,
  };
  const { wireBytes: capability } = await mintToken(owner);
  const receiver = await createReceiver(owner);
  await deliver(api.server, receiver);
  const rotated = await createReceiver(owner);
  await owner.post(`/webhook-receivers/${rotated.id}/rotate`, { secret: "new", overlapHours: 1 });
  const keyId = decodeProtectedHeader(owner.accessToken).kid;
  const env = { PORT: String(api.server.port) };
  return {
    env,
    owner,
    tabs: { first, second },
    idle,
    newUser,
    capability,
    receiver,
    rotated,
    keyId,
    encryptionKey,
  };
}

const refresh = (api: TestApi, cookie: string) =>
  createCaller(api.server, { cookie }).post<{ access_token: string }>("/auth/refresh");
const readStatus = async (api: TestApi, token: string) =>
  (await createCaller(api.server, { authorization: `Bearer ${token}` }).get("/auth/me")).status;
const readEncryptedSecret = async (api: TestApi, email: string) =>
  (
    await api.sql<{ mfa_secret: string }>("select mfa_secret from users where email = $1", [email])
  )[0]!.mfa_secret;

describe("after a rotation of all keys", () => {
  let dataDir: string;
  let before: FirstKeysData;
  let api: TestApi;
  let removalBeforeStart: unknown;
  beforeAll(async () => {
    dataDir = await createPreparedDir();
    before = await useFirstKeys(dataDir);
    await changeKeys(dataDir, "rotate");
    removalBeforeStart = await changeKeys(dataDir, "retire").catch((error: unknown) => error);
    api = await startApi({ dataDir, env: before.env });
  });
  afterAll(async () => {
    await api.stop();
    await rm(dataDir, { recursive: true });
  });

  test("the earlier keys can't be removed before a start with the new ones", () => {
    expect(removalBeforeStart).toMatchObject({
      stderr: expect.stringMatching(
        /^ENCRYPTION_KEY: no server has started with the new key, .*: restart the server first\n/,
      ) as unknown,
    });
  });

  test("sessions continue, with access tokens of both keys", async () => {
    const { owner, keyId } = before;
    expect(await readStatus(api, owner.accessToken)).toBe(200);
    const { status, body } = await refresh(api, owner.cookie);
    expect(status).toBe(200);
    expect(decodeProtectedHeader(body.access_token).kid).not.toBe(keyId);
    expect(await readStatus(api, body.access_token)).toBe(200);
  });

  test("the key set has the new public key first and the old one after it", async () => {
    const { body } = await api.anonymous.get<{ keys: JWK[] }>("/.well-known/jwks.json");
    expect(body.keys).toHaveLength(2);
    expect(body.keys[1]?.kid).toBe(before.keyId);
  });

  test("an agent connects with a capability token of the old key", async () => {
    const agent = await api.connectAgent(before.capability, { port: 1, subdomain: "rotated" });
    expect(agent.code).toBeUndefined();
    agent.socket?.close();
  });

  test("a vendor's deliveries are accepted", async () => {
    expect((await deliver(api.server, before.receiver)).status).toBe(200);
  });

  test("a code that was mailed before is accepted", async () => {
    const verified = await api.anonymous.post("/auth/verify-email-otp", before.newUser);
    expect(verified.status).toBe(200);
  });

  test("a replaced secret that is deleted while it is encrypted again stays deleted", async () => {
    await api.sql("begin");
    await api.sql(
      "update webhook_receivers set previous_secret = null, previous_secret_until = null where id = $1",
      [before.rotated.id],
    );
    const cron = api.runCron();
    await waitForBlockedStatement(api);
    await api.sql("commit");
    await cron;
    expect(api.server.output).not.toContain("secret_unreadable");
    expect(
      await api.sql("select previous_secret from webhook_receivers where id = $1", [
        before.rotated.id,
      ]),
    ).toEqual([{ previous_secret: null }]);
  });

  test("a mail in the outbox is delivered, and stored secrets are encrypted again", async () => {
    await api.runCron();
    expect((await api.readMailsTo("waiting@example.com")).join()).toContain(
      "Subject: Encrypted before",
    );
    expect(await api.sql("select 1 from outbox")).toEqual([]);

    const [newKey = ""] = await readEncryptionKeys(dataDir);
    const encrypted = await readEncryptedSecret(api, before.newUser.email);
    expect(encrypted).toMatch(await getCurrentKeyPrefix(configWithKeys([newKey])));
    expect(await decrypt(configWithKeys([newKey]), TOTP_SECRET_PURPOSE, encrypted)).toBe(SEED);
  });

  test("a second tab gets the same new refresh token as the first", async () => {
    const { first, second } = before.tabs;
    await api.sql("update sessions set rotated_at = now() where user_id = $1", [
      before.owner.userId,
    ]);
    const reply = await refresh(api, first);
    expect(reply.status).toBe(200);
    expect(getFirstCookie(reply.headers)).toBe(second);
    expect((await refresh(api, second)).status).toBe(200);
  });

  describe("and a removal of the earlier ones", () => {
    let renewed: string;
    beforeAll(async () => {
      await api.runCron();
      renewed = getFirstCookie((await refresh(api, before.idle.renewed)).headers);
      await api.stop();
      await changeKeys(dataDir, "retire");
      api = await startApi({ dataDir, env: before.env });
    });

    test("everything works, and renewed sessions continue", async () => {
      expect((await api.anonymous.get("/ready")).status).toBe(200);
      expect((await refresh(api, renewed)).status).toBe(200);
    });

    test("stored secrets are readable", async () => {
      const config = configWithKeys(await readEncryptionKeys(dataDir));
      expect(config.ENCRYPTION_KEY).toHaveLength(1);
      const encrypted = await readEncryptedSecret(api, before.newUser.email);
      expect(await decrypt(config, TOTP_SECRET_PURPOSE, encrypted)).toBe(SEED);
      expect((await deliver(api.server, before.receiver)).status).toBe(200);
    });

    test("what only they had signed is refused", async () => {
      expect(await readStatus(api, before.owner.accessToken)).toBe(401);
      expect((await refresh(api, before.idle.unused)).status).toBe(401);
      const agent = await api.connectAgent(before.capability, { port: 1, subdomain: "retired" });
      expect(agent.code).toBe(CLOSE.unauthorized);
    });

    test("a start with only an earlier key is refused", async () => {
      const otherDir = await createPreparedDir();
      const { code, stderr } = await startExpectingFailure({
        DATABASE_URL: await api.server.databaseUrl(),
        DATA_DIR: otherDir,
        ENCRYPTION_KEY: before.encryptionKey,
      });
      expect(stderr).toMatch(/ENCRYPTION_KEY: not the key that this database was set up with/);
      expect(code).toBe(1);
      await rm(otherDir, { recursive: true });
    });
  });
});

test("a secret that no key can decrypt does not prevent the re-encryption of the others", async () => {
  const [first, second] = [crypto.getRandomValues(new Uint8Array(32)), new Uint8Array(32).fill(7)];
  const keys = [first, second].map((key) => Buffer.from(key).toString("base64"));
  await using api = await startApi({ env: { ENCRYPTION_KEY: keys.join(",") } });
  const people = await Promise.all([api.owner(), api.owner(), api.owner()]);
  const lost = configWithKeys([Buffer.alloc(32, 8).toString("base64")]);
  for (const [at, { email }] of people.entries()) {
    const config = at === 1 ? lost : configWithKeys([keys[1]!]);
    const encrypted = await encrypt(config, TOTP_SECRET_PURPOSE, SEED);
    await api.sql("update users set mfa_secret = $1 where email = $2", [encrypted, email]);
  }
  await api.runCron();
  const prefix = await getCurrentKeyPrefix(configWithKeys(keys));
  const isCurrent = [];
  for (const { email } of people) {
    isCurrent.push((await readEncryptedSecret(api, email)).startsWith(prefix));
  }
  expect(isCurrent).toEqual([true, false, true]);
  await waitUntil(() => Promise.resolve(api.server.output.includes("secret_unreadable")));
});
