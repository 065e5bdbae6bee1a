import { HOTP, Secret, URI } from "otpauth";
import { describe, expect, test } from "vitest";
import {
  hashRecoveryCode,
  newRecoveryCodes,
} from "../../../../workers/identity/accounts/recovery-codes.ts";
import {
  newTotpSecret,
  readTotpSecret,
  stepOfTotpCode,
  totpCode,
  totpStepAt,
  totpUri,
} from "../../../../workers/identity/accounts/totp.ts";

const NOW = Date.UTC(2026, 0, 1, 12, 0, 17);
/** RFC 6238, appendix B. */
const SECRET = Secret.fromLatin1("12345678901234567890").base32;

describe("a code", () => {
  test.each([
    [59, "94287082"],
    [1_111_111_109, "07081804"],
    [1_111_111_111, "14050471"],
    [1_234_567_890, "89005924"],
    [2_000_000_000, "69279037"],
    [20_000_000_000, "65353130"],
  ])("at second %d is what RFC 6238 says", (seconds, code) => {
    const step = totpStepAt(seconds * 1000);
    expect(totpCode(SECRET, step, 8)).toBe(code);
    expect(totpCode(SECRET, step)).toBe(code.slice(2));
    expect(stepOfTotpCode(SECRET, code.slice(2), seconds * 1000)).toBe(step);
  });

  test("counts one step early and one step late, and no more", () => {
    const step = totpStepAt(NOW);
    const accepted = [-3, -2, -1, 0, 1, 2, 3].filter(
      (drift) => stepOfTotpCode(SECRET, totpCode(SECRET, step + drift), NOW) === step + drift,
    );
    expect(accepted).toEqual([-1, 0, 1]);
  });

  test("changes with the thirtieth second, not before", () => {
    const start = totpStepAt(NOW) * 30_000;
    expect(totpStepAt(start + 29_999)).toBe(totpStepAt(start));
    expect(totpStepAt(start + 30_000)).toBe(totpStepAt(start) + 1);
  });

  test.each(["", "12345", "1234567", "12 456", "abcdef", "１２３４５６", "٣٣٣٣٣٣", "-12345"])(
    "that is not six digits is nobody's: %j",
    (code) => {
      expect(stepOfTotpCode(SECRET, code, NOW)).toBeNull();
    },
  );
});

describe("a secret", () => {
  test("is 160 random bits in base32", () => {
    expect(newTotpSecret()).toMatch(/^[A-Z2-7]{32}$/);
    expect(newTotpSecret()).not.toBe(newTotpSecret());
  });

  test("reaches an app by a URI that another reader understands", () => {
    const read = URI.parse(totpUri(SECRET, "a+b@example.com"));
    expect(read).toMatchObject({
      issuer: "Underpass",
      label: "a+b@example.com",
      algorithm: "SHA1",
      digits: 6,
      period: 30,
    });
    const at = { counter: totpStepAt(NOW) };
    expect(HOTP.generate({ secret: read.secret, ...at })).toBe(totpCode(SECRET, at.counter));
  });

  test("is read however an app shows it", () => {
    const groups = SECRET.toLowerCase().replace(/.{4}/g, "$& ");
    expect(readTotpSecret(groups)).toBe(SECRET);
    expect(readTotpSecret(`${SECRET}====`)).toBe(SECRET);
  });

  test("of less than 128 bits, or that is no base32, is none", () => {
    const ofBytes = (size: number) => new Secret({ size }).base32;
    expect(readTotpSecret(ofBytes(16))).not.toBeNull();
    for (const text of ["", "====", ofBytes(15), ofBytes(129), `${SECRET}1`, `${SECRET}\n!`]) {
      expect([text, readTotpSecret(text)]).toEqual([text, null]);
    }
  });
});

describe("recovery codes", () => {
  test("are ten, each of 80 random bits", () => {
    const codes = newRecoveryCodes();
    expect(codes).toHaveLength(10);
    expect(new Set(codes).size).toBe(10);
    for (const code of codes) expect(code).toMatch(/^([a-z2-7]{4}-){3}[a-z2-7]{4}$/);
  });

  test("are the same however they are typed, and others for another account", async () => {
    const [code] = newRecoveryCodes() as [string];
    const hash = await hashRecoveryCode("user", code);
    const spellings = [
      code.toUpperCase(),
      code.replaceAll("-", ""),
      code.replaceAll("-", " "),
      ` ${code}\n`,
    ];
    for (const typed of spellings) expect(await hashRecoveryCode("user", typed)).toBe(hash);
    expect(await hashRecoveryCode("other", code)).not.toBe(hash);
  });
});
