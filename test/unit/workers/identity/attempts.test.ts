import { expect, test } from "vitest";
import { PROVIDER_SIGN_IN_MAX_MS } from "../../../../workers/limits.ts";
import { getConfig } from "../../../../workers/config/config.ts";
import {
  ACCOUNT_SIGN_IN as FOR_ACCOUNT,
  VISITOR_SIGN_IN,
  createAttempt,
  decryptAttempt,
  encryptAttempt,
} from "../../../../workers/identity/providers/attempts.ts";
import { encrypt } from "../../../../workers/identity/encryption.ts";

const config = getConfig({
  ENCRYPTION_KEY: btoa("k".repeat(32)),
  JWT_PRIVATE_KEY: "not used",
  TOKEN_SIGNING_KEY: "not used",
});
const STARTED = Date.UTC(2026, 0, 1);
const attempt = { ...createAttempt("idp_a", "/tunnels", STARTED), sessions: "a hash" };
const answer = { provider: "idp_a", state: attempt.state } as const;

test("an attempt can be finished until it expires, and not after", async () => {
  const encrypted = await encryptAttempt(config, FOR_ACCOUNT, attempt);
  const end = STARTED + PROVIDER_SIGN_IN_MAX_MS;
  expect(await decryptAttempt(config, FOR_ACCOUNT, { encrypted, ...answer }, end - 1)).toEqual(
    attempt,
  );
  expect(await decryptAttempt(config, FOR_ACCOUNT, { encrypted, ...answer }, end)).toBeNull();
});

test("an attempt can be finished only with its own answer", async () => {
  const encrypted = await encryptAttempt(config, FOR_ACCOUNT, attempt);
  for (const other of [
    { ...answer, provider: "idp_b" as const },
    { ...answer, state: createAttempt("idp_a", "/", STARTED).state },
    { ...answer, state: "" },
  ]) {
    expect(await decryptAttempt(config, FOR_ACCOUNT, { encrypted, ...other }, STARTED)).toBeNull();
  }
});

test("a text that is not encrypted, or encrypted for another purpose, is not an attempt", async () => {
  const foreign = await encrypt(config, "mfa enrollment", JSON.stringify(attempt));
  for (const encrypted of [foreign, JSON.stringify(attempt), "", "v1...", "v1.x.y.z"]) {
    expect(await decryptAttempt(config, FOR_ACCOUNT, { encrypted, ...answer }, STARTED)).toBeNull();
  }
});

test("the cookie does not reveal its contents", async () => {
  const encrypted = await encryptAttempt(config, FOR_ACCOUNT, attempt);
  for (const secret of [attempt.state, attempt.nonce, attempt.verifier]) {
    expect(encrypted).not.toContain(secret);
  }
});

test("a visitor's sign-in is not valid as one with an account, nor the reverse", async () => {
  const visit = {
    ...createAttempt("idp_a", "/", STARTED),
    tunnelId: crypto.randomUUID(),
    browser: "hash of a nonce",
  };
  const toVisit = await encryptAttempt(config, VISITOR_SIGN_IN, visit);
  const visited = { ...answer, state: visit.state };
  expect(
    await decryptAttempt(config, VISITOR_SIGN_IN, { encrypted: toVisit, ...visited }, STARTED),
  ).toEqual(visit);
  expect(
    await decryptAttempt(config, FOR_ACCOUNT, { encrypted: toVisit, ...visited }, STARTED),
  ).toBeNull();
  const forAccount = await encryptAttempt(config, FOR_ACCOUNT, attempt);
  expect(
    await decryptAttempt(config, VISITOR_SIGN_IN, { encrypted: forAccount, ...answer }, STARTED),
  ).toBeNull();
});
