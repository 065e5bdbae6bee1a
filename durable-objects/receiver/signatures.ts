/**
 * Verifies the signature of a delivery. It covers the bytes as they were received: JSON that is parsed and
 * serialized again can be a different text.
 */
import { equalInConstantTime } from "../../shared/constant-time.ts";
import type { Validator } from "../../protocol/schemas/webhooks.ts";
import { concatBytes, toHex, toUtf8 } from "../../shared/bytes.ts";

/** How far a vendor's clock may differ, either way, where a signature contains a timestamp. */
const SIGNATURE_TOLERANCE_SECONDS = 5 * 60;
/** Signatures of one scheme that are checked in one header. */
const SIGNATURES_MAX = 10;

export interface SignedRequest {
  headers: Headers;
  body: Uint8Array<ArrayBuffer>;
}

/** The signature of a delivery, as its headers state it. */
interface SignatureClaim {
  /** The signed text before the body. */
  prefix: string;
  /** One of them must match. Each has 64 hexadecimal digits, in lower case. */
  signatures: string[];
}

const HMAC = { name: "HMAC", hash: "SHA-256" } as const;

export function importSecret(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", toUtf8(secret), HMAC, false, ["sign"]);
}

/** @param keys of the active secrets: one of them must have made the signature. */
export async function isSignatureValid(
  validator: Validator,
  keys: CryptoKey[],
  { headers, body }: SignedRequest,
  nowMs: number,
): Promise<boolean> {
  const claim = readClaim(validator, headers, nowMs);
  if (!claim || claim.signatures.length === 0) return false;
  const signed = prepend(claim.prefix, body);
  const macs = await Promise.all(keys.map((key) => crypto.subtle.sign(HMAC, key, signed)));
  let found = false;
  for (const mac of macs.map((bytes) => toHex(new Uint8Array(bytes)))) {
    for (const signature of claim.signatures) {
      if (equalInConstantTime(mac, signature)) found = true;
    }
  }
  return found;
}

/** @returns null when the headers have no signature, or its timestamp is too far from now. */
function readClaim(validator: Validator, headers: Headers, nowMs: number): SignatureClaim | null {
  switch (validator) {
    case "code_host":
      return parsePlainClaim(headers.get("x-hub-signature-256"));
    case "generic_hmac_sha256":
      return parsePlainClaim(headers.get("x-signature-256"));
    case "chat_app": {
      const time = headers.get("x-slack-request-timestamp");
      if (time === null || !isWithinTolerance(time, nowMs)) return null;
      const signatures = parseSignatures(headers.get("x-slack-signature"), "v0");
      return { prefix: `v0:${time}:`, signatures };
    }
    case "payments": {
      const line = headers.get("stripe-signature");
      const times = parseValues(line, "t");
      const [time] = times;
      if (time === undefined || times.length > 1 || !isWithinTolerance(time, nowMs)) return null;
      return { prefix: `${time}.`, signatures: parseSignatures(line, "v1") };
    }
  }
}

function parsePlainClaim(line: string | null): SignatureClaim {
  return { prefix: "", signatures: parseSignatures(line, "sha256") };
}

/** Signatures of other schemes and malformed ones are ignored. */
function parseSignatures(line: string | null, scheme: string): string[] {
  return parseValues(line, scheme)
    .filter((value) => /^[0-9a-f]{64}$/i.test(value))
    .slice(0, SIGNATURES_MAX)
    .map((value) => value.toLowerCase());
}

/** @param line comma-separated `name=value` pairs. */
function parseValues(line: string | null, name: string): string[] {
  return (line ?? "")
    .split(",")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
}

function isWithinTolerance(time: string, nowMs: number): boolean {
  if (!/^\d{1,12}$/.test(time)) return false;
  return Math.abs(nowMs / 1000 - Number(time)) <= SIGNATURE_TOLERANCE_SECONDS;
}

function prepend(prefix: string, body: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (prefix === "") return body;
  return concatBytes([toUtf8(prefix), body]);
}
