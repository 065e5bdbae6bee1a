import { argon2id } from "@noble/hashes/argon2.js";
import { afterAll, describe, expect, test } from "vitest";
import { fromBase64, toBase64, toHex, toUtf8 } from "../../../../shared/bytes.ts";
import { Argon2 } from "../../../../self-host/gateway/argon2.ts";
import type { Config } from "../../../../workers/config/config.ts";
import {
  hashNewPassword,
  hashPassword,
  verifyPassword,
  type HashCaller,
} from "../../../../workers/identity/accounts/password-hashing.ts";
import { DUMMY_HASH, getPasswordError } from "../../../../workers/identity/accounts/passwords.ts";

const EMAIL = "person@example.com";

const config = {
  ENCRYPTION_KEY: [toBase64(new Uint8Array(32))],
  HOSTED: true,
} as unknown as Config;
const argon2 = new Argon2();
afterAll(() => argon2.close());

const gateway = {
  fetch: async (_url: string, init: { body: string }) => {
    const { status, body } = await argon2.handle(init.body);
    return new Response(body, { status });
  },
};
/** The two places where a password is hashed. */
const CALLERS = {
  "an isolate": { env: {}, config, address: "", account: EMAIL },
  "the gateway": { env: { MAIL_GATEWAY: gateway }, config, address: "", account: EMAIL },
} as unknown as Record<string, HashCaller>;
const [isolate, viaGateway] = Object.values(CALLERS) as [HashCaller, HashCaller];

describe("a new password", () => {
  test.each([
    ["of 12 characters", "twelve chars"],
    ["of 12 characters outside the basic plane", "🐎".repeat(12)],
    ["of 1,024 bytes", "p".repeat(1_024)],
    ["with spaces around it", "  twelve chars  "],
  ])("%s is accepted", (_, password) => {
    expect(getPasswordError(password, EMAIL)).toBeNull();
  });

  test.each([
    ["of 11 characters", "eleven char", /at least 12/],
    ["of 11 characters in 22 units of UTF-16", "🐎".repeat(11), /at least 12/],
    ["of 1,025 bytes", "p".repeat(1_025), /at most 1024/],
    ["of 342 characters with three bytes each", "€".repeat(342), /at most 1024/],
    ["of 12 characters that are fewer once composed", "e\u0301".repeat(6), /at least 12/],
    ["with a NUL in it", "before\0and after", /NUL/],
    ["that is the email address", EMAIL, /email/],
    ["that is the email address in other letters", "Ｐerson@EXAMPLE.com", /email/],
    ["that many people have", "password1234", /common/],
    ["that is all digits in order", "123456789012", /common/],
    ["that many people have, in mixed case", "PassWordPassword", /common/],
    ["that many people have, in full-width letters", "ｐａｓｓｗｏｒｄ１２３４", /common/],
  ])("%s is refused", (_, password, message) => {
    expect(getPasswordError(password, EMAIL)).toMatch(message);
  });
});

test.each([
  ["a ligature", "o\ufb03ce at the sea", "office at the sea"],
  ["full-width letters", "ｆｕｌｌ ｗｉｄｔｈ ｌｅｔｔｅｒｓ", "full width letters"],
  ["a combining accent", "cafe\u0301 on the corner", "café on the corner"],
])("%s is the same password in every Unicode normalization", async (_, one, other) => {
  const [hash, otherHash] = [
    await hashPassword(isolate, one),
    await hashPassword(viaGateway, other),
  ];
  expect(await verifyPassword(isolate, hash, other)).toBe(true);
  expect(await verifyPassword(viaGateway, hash, other)).toBe(true);
  expect(await verifyPassword(isolate, otherHash, one)).toBe(true);
  expect(await verifyPassword(isolate, otherHash, other.toUpperCase())).toBe(false);
});

test("sign-ups with equal passwords have equal hashes at one address, and different ones elsewhere", async () => {
  const hash = (account: string, password: string) =>
    hashNewPassword({ ...viaGateway, account }, password);
  const first = await hash(EMAIL, "a good password");
  expect(await hash(EMAIL, "a good password")).toBe(first);
  expect(await hash(EMAIL, "another password")).not.toBe(first);
  expect(await hash("other@example.com", "a good password")).not.toBe(first);
  expect(await verifyPassword(isolate, first, "a good password")).toBe(true);
});

/** The test vector of RFC 9106 §5.3. It uses a secret and associated data, which the service does not. */
test.each(Object.entries(CALLERS))(
  "hashes of %s equal those of a reference implementation that reproduces RFC 9106's examples",
  async (_, caller) => {
    const bytes = (value: number, length: number) => new Uint8Array(length).fill(value);
    const vector = argon2id(bytes(1, 32), bytes(2, 16), {
      t: 3,
      m: 32,
      p: 4,
      dkLen: 32,
      key: bytes(3, 8),
      personalization: bytes(4, 12),
    });
    expect(toHex(vector)).toBe("0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659");

    const encoded = await hashPassword(caller, "ﬁve words for a tést");
    expect(encoded).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
    const [, , , , salt = "", hash = ""] = encoded.split("$");
    const cost = { t: 2, m: 19_456, p: 1, dkLen: 32 };
    const oracle = argon2id(toUtf8("five words for a tést"), fromBase64(salt)!, cost);
    expect(toHex(fromBase64(hash)!)).toBe(toHex(oracle));
  },
);

test("the dummy hash has the same cost as real ones, and no password matches it", async () => {
  const shape = (encoded: string) =>
    encoded.split("$").map((part, at) => (at < 4 ? part : part.length));
  expect(shape(DUMMY_HASH)).toEqual(shape(await hashPassword(isolate, "a user's password")));
  expect(await verifyPassword(isolate, null, "anything")).toBe(false);
});
