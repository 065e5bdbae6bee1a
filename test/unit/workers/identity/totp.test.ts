import { HOTP, Secret, URI } from "otpauth";
import { describe, expect, test } from "vitest";
import {
  hashRecoveryCode,
  generateRecoveryCodes,
} from "../../../../workers/identity/accounts/recovery-codes.ts";
import {
  generateTotpSecret,
  parseTotpSecret,
  findTotpStep,
  generateTotpCode,
  getTotpStep,
  buildTotpUri,
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
  ])("at second %d equals the last six digits of RFC 6238's", (seconds, code) => {
    const step = getTotpStep(seconds * 1000);
    expect(generateTotpCode(SECRET, step)).toBe(code.slice(2));
    expect(findTotpStep(SECRET, code.slice(2), seconds * 1000)).toBe(step);
  });

  test("is accepted one step early and one step late, and no more", () => {
    const step = getTotpStep(NOW);
    const accepted = [-3, -2, -1, 0, 1, 2, 3].filter(
      (drift) => findTotpStep(SECRET, generateTotpCode(SECRET, step + drift), NOW) === step + drift,
    );
    expect(accepted).toEqual([-1, 0, 1]);
  });

  test("changes every thirty seconds", () => {
    const start = getTotpStep(NOW) * 30_000;
    expect(getTotpStep(start + 29_999)).toBe(getTotpStep(start));
    expect(getTotpStep(start + 30_000)).toBe(getTotpStep(start) + 1);
  });

  test.each(["", "12345", "1234567", "12 456", "abcdef", "１２３４５６", "٣٣٣٣٣٣", "-12345"])(
    "that is not six digits is not valid: %j",
    (code) => {
      expect(findTotpStep(SECRET, code, NOW)).toBeNull();
    },
  );
});

describe("a secret", () => {
  test("is 160 random bits in base32", () => {
    expect(generateTotpSecret()).toMatch(/^[A-Z2-7]{32}$/);
    expect(generateTotpSecret()).not.toBe(generateTotpSecret());
  });

  test("is in the URI in a form that an independent parser understands", () => {
    const read = URI.parse(buildTotpUri(SECRET, "a+b@example.com"));
    expect(read).toMatchObject({
      issuer: "Underpass",
      label: "a+b@example.com",
      algorithm: "SHA1",
      digits: 6,
      period: 30,
    });
    const at = { counter: getTotpStep(NOW) };
    expect(HOTP.generate({ secret: read.secret, ...at })).toBe(
      generateTotpCode(SECRET, at.counter),
    );
  });

  test("is accepted in every form that apps show", () => {
    const groups = SECRET.toLowerCase().replace(/.{4}/g, "$& ");
    expect(parseTotpSecret(groups)).toBe(SECRET);
    expect(parseTotpSecret(`${SECRET}====`)).toBe(SECRET);
  });

  test("of fewer than 128 bits, or not in base32, is rejected", () => {
    const ofBytes = (size: number) => new Secret({ size }).base32;
    const shortest = ofBytes(16);
    expect(parseTotpSecret(shortest)).toBe(shortest);
    for (const text of ["", "====", ofBytes(15), ofBytes(129), `${SECRET}1`, `${SECRET}\n!`]) {
      expect([text, parseTotpSecret(text)]).toEqual([text, null]);
    }
  });
});

describe("recovery codes", () => {
  test("are ten codes of 80 random bits each", () => {
    const codes = generateRecoveryCodes();
    expect(codes).toHaveLength(10);
    expect(new Set(codes).size).toBe(10);
    for (const code of codes) expect(code).toMatch(/^([a-z2-7]{4}-){3}[a-z2-7]{4}$/);
  });

  test("match however they are typed, and only for their account", async () => {
    const [code] = generateRecoveryCodes() as [string];
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
