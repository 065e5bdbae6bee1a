import Argon2 from "@phi-ag/argon2";
import wasm from "@phi-ag/argon2/argon2.wasm";
import { argon2id } from "@noble/hashes/argon2.js";
import { describe, expect, test } from "vitest";
import { fromBase64, toHex, toUtf8 } from "../../../../shared/bytes.ts";
import {
  hashPassword,
  DUMMY_HASH,
  getPasswordError,
  verifyPassword,
} from "../../../../workers/identity/accounts/passwords.ts";

const EMAIL = "person@example.com";

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
])("%s is the same password in every Unicode normalization", (_, one, other) => {
  expect(verifyPassword(hashPassword(one), other)).toBe(true);
  expect(verifyPassword(hashPassword(other), one)).toBe(true);
  expect(verifyPassword(hashPassword(other), other.toUpperCase())).toBe(false);
});

/** The test vector of RFC 9106 §5.3. It uses a secret and associated data, which the service does not. */
test("hashes equal those of a reference implementation that reproduces RFC 9106's examples", () => {
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

  const encoded = hashPassword("ﬁve words for a test");
  expect(encoded).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
  const [, , , , salt = "", hash = ""] = encoded.split("$");
  const cost = { t: 2, m: 19_456, p: 1, dkLen: 32 };
  const oracle = argon2id(toUtf8("five words for a test"), fromBase64(salt)!, cost);
  expect(toHex(fromBase64(hash)!)).toBe(toHex(oracle));
});

test("the dummy hash has the same cost as real ones, and no password matches it", () => {
  const shape = (encoded: string) =>
    encoded.split("$").map((part, at) => (at < 4 ? part : part.length));
  expect(shape(DUMMY_HASH)).toEqual(shape(hashPassword("a user's password")));
  // The error is a mismatch, so the hash was computed completely.
  const verdict = new Argon2(new WebAssembly.Instance(wasm)).tryVerify(DUMMY_HASH, "anything");
  expect(verdict).toMatchObject({ success: false, error: expect.stringMatching(/verif|match/i) });
  expect(verifyPassword(null, "anything")).toBe(false);
});
