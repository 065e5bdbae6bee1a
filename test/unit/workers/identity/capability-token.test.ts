import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  BincodeError,
  BincodeReader,
  BincodeWriter,
} from "../../../../workers/identity/tokens/bincode.ts";
import {
  decodeCapabilityToken,
  signCapabilityToken,
  verifyCapabilityToken,
  type TokenPayload,
} from "../../../../workers/identity/tokens/capability-token.ts";
import { fromHex, toHex, toUtf8 } from "../../../../shared/bytes.ts";
import { getCapabilityTokenKeys, type SigningKeys } from "../../../../workers/identity/keys.ts";
import type { Config } from "../../../../workers/config/config.ts";

/** RFC 8032 §7.1, test 1: a published key. */
const EXAMPLE_KEY = {
  kty: "OKP",
  crv: "Ed25519",
  kid: "example-key",
  d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
  x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
};
const OTHER_KEY = {
  kty: "OKP",
  crv: "Ed25519",
  kid: "other-key",
  d: "TM0Imyj_ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U-4pvs",
  x: "PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw",
};

const loadKeys = (jwks: object): Promise<SigningKeys> =>
  getCapabilityTokenKeys({ TOKEN_SIGNING_KEY: JSON.stringify(jwks) } as Config);

const PAYLOAD: Omit<TokenPayload, "keyId"> = {
  kind: "agent",
  nonce: fromHex("000102030405060708090a0b0c0d0e0f"),
  organizationId: fromHex("6ba7b8109dad11d180b400c04fd430c8"),
  project: "staging",
  allowedSubdomains: ["api-*", "docs-staging"],
  tunnelQuota: 5,
  bandwidthLimitMbps: 100,
  issuedAtSeconds: 1_767_225_600,
  expiresAtSeconds: 1_767_312_000,
};
const WHILE_GOOD_MS = PAYLOAD.issuedAtSeconds * 1000 + 1;

describe("a capability token", () => {
  test("equals the example in the documentation byte for byte", async () => {
    const bytes = await signCapabilityToken(PAYLOAD, await loadKeys(EXAMPLE_KEY));
    const documented = readFileSync("docs/protocols/capability-token.md", "utf8");
    const example = /<!-- example -->\s*```\n(.*?)```/s.exec(documented)?.[1] ?? "";
    const hex = example.replace(/#.*$/gm, "").replace(/\s/g, "");
    expect(toHex(bytes)).toBe(hex);
  });

  test("contains the fields that it was made with", async () => {
    const keys = await loadKeys(EXAMPLE_KEY);
    const bytes = await signCapabilityToken(PAYLOAD, keys);
    expect(await verifyCapabilityToken(bytes, keys, WHILE_GOOD_MS)).toEqual({
      ok: { ...PAYLOAD, keyId: "example-key" },
    });
  });

  test("is rejected when any byte is changed", async () => {
    const keys = await loadKeys(EXAMPLE_KEY);
    const bytes = await signCapabilityToken(PAYLOAD, keys);
    for (let at = 0; at < bytes.length; at++) {
      const changed = bytes.slice();
      changed[at]! ^= 0x01;
      expect(await verifyCapabilityToken(changed, keys, WHILE_GOOD_MS)).toHaveProperty("error");
    }
  });

  test("is rejected when truncated anywhere, or followed by anything", async () => {
    const bytes = await signCapabilityToken(PAYLOAD, await loadKeys(EXAMPLE_KEY));
    for (let length = 0; length < bytes.length; length++) {
      expect(decodeCapabilityToken(bytes.subarray(0, length))).toBeNull();
    }
    expect(decodeCapabilityToken(Uint8Array.from([...bytes, 0]))).toBeNull();
  });

  test("is rejected when it has another version or kind, although our key signed it", async () => {
    const keys = await loadKeys(EXAMPLE_KEY);
    const { payload, signed } = decodeCapabilityToken(await signCapabilityToken(PAYLOAD, keys))!;
    const prefix = toUtf8("underpass capability token v1\0").byteLength;
    const sign = async (version: number, kind: number) => {
      const changed = signed.slice();
      new DataView(changed.buffer, prefix).setUint32(0, version, true);
      new DataView(changed.buffer, prefix).setUint32(4, kind, true);
      const signature = await crypto.subtle.sign("Ed25519", keys.signer.key, changed);
      const writer = new BincodeWriter();
      writer.fixed(changed.subarray(prefix));
      writer.bytes(new Uint8Array(signature));
      return verifyCapabilityToken(writer.finish(), keys, WHILE_GOOD_MS);
    };
    expect(await sign(1, 0)).toEqual({ ok: payload });
    expect(await sign(2, 0)).toEqual({ error: "malformed" });
    expect(await sign(1, 99)).toEqual({ error: "malformed" });
  });

  test("has at most 16 KiB", async () => {
    const keys = await loadKeys(EXAMPLE_KEY);
    const sign = (patterns: number) =>
      signCapabilityToken(
        { ...PAYLOAD, allowedSubdomains: Array(patterns).fill("x".repeat(92)) },
        keys,
      );
    expect(decodeCapabilityToken(await sign(160))).not.toBeNull();
    expect(decodeCapabilityToken(await sign(164))).toBeNull();
  });

  test("is valid until it expires, and rejected after", async () => {
    const keys = await loadKeys(EXAMPLE_KEY);
    const bytes = await signCapabilityToken(PAYLOAD, keys);
    const endMs = PAYLOAD.expiresAtSeconds * 1000;
    expect(await verifyCapabilityToken(bytes, keys, endMs - 1)).toHaveProperty("ok");
    expect(await verifyCapabilityToken(bytes, keys, endMs)).toEqual({ error: "expired" });
  });

  test("is rejected when another key signed it, even with our key's id", async () => {
    const bytes = await signCapabilityToken(PAYLOAD, await loadKeys(OTHER_KEY));
    const disguised = await loadKeys({ ...OTHER_KEY, kid: EXAMPLE_KEY.kid });
    const forged = await signCapabilityToken(PAYLOAD, disguised);
    const keys = await loadKeys(EXAMPLE_KEY);
    for (const token of [bytes, forged]) {
      expect(await verifyCapabilityToken(token, keys, WHILE_GOOD_MS)).toEqual({
        error: "bad_signature",
      });
    }
  });

  test("signed with a retired key is valid while that key is in the set", async () => {
    const bytes = await signCapabilityToken(PAYLOAD, await loadKeys(EXAMPLE_KEY));
    const rotated = await loadKeys({ keys: [OTHER_KEY, EXAMPLE_KEY] });
    expect(await verifyCapabilityToken(bytes, rotated, WHILE_GOOD_MS)).toHaveProperty("ok");
  });
});

describe("bincode", () => {
  // `bincode::serialize(&M::B { name: "x", bytes: vec![1, 2, 3] })` of bincode 1.3.
  const VECTOR = "010000000100000000000000780300000000000000010203";

  test("is encoded like bincode 1.3", () => {
    const writer = new BincodeWriter();
    writer.u32(1);
    writer.string("x");
    writer.bytes(Uint8Array.of(1, 2, 3));
    expect(toHex(writer.finish())).toBe(VECTOR);
  });

  test("is decoded like bincode 1.3", () => {
    const reader = new BincodeReader(fromHex(VECTOR));
    expect([reader.u32(), reader.string(), [...reader.bytes()], reader.atEnd]).toEqual([
      1,
      "x",
      [1, 2, 3],
      true,
    ]);
  });

  test("round-trips negative numbers", () => {
    const writer = new BincodeWriter();
    writer.i64(-2n);
    expect(toHex(writer.finish())).toBe("feffffffffffffff");
    expect(new BincodeReader(writer.finish()).i64()).toBe(-2n);
  });

  test.each([
    ["a length of 2^64 - 1", "ffffffffffffffff"],
    ["a length beyond the remaining bytes", "0400000000000000aabbcc"],
    ["half a length", "01000000"],
  ])("%s allocates nothing and is an error", (_, hex) => {
    expect(() => new BincodeReader(fromHex(hex)).bytes()).toThrow(BincodeError);
    expect(() => new BincodeReader(fromHex(hex)).list(() => 0)).toThrow(BincodeError);
  });

  test.each([
    ["an option tagged 2", "02", (reader: BincodeReader) => reader.option(() => 0)],
    ["a string of broken UTF-8", "0100000000000000ff", (reader: BincodeReader) => reader.string()],
  ])("%s is an error", (_, hex, read) => {
    expect(() => read(new BincodeReader(fromHex(hex)))).toThrow();
  });
});
