/**
 * Whether a vendor signed a delivery. Signatures are over the bytes as they came: JSON that was parsed and
 * written again is another text.
 */
import { equalInConstantTime } from "../../shared/constant-time.ts";
import type { Validator } from "../../protocol/schemas/webhooks.ts";

/** How far a vendor's clock may be from ours, either way, where the signature holds a time. */
const SIGNATURE_TOLERANCE_SECONDS = 5 * 60;
/** Of one scheme, in one header line. */
const SIGNATURES_MAX = 10;

export interface SignedRequest {
  headers: Headers;
  body: Uint8Array<ArrayBuffer>;
}

/** What a vendor says of its signature. */
interface SignatureClaim {
  /** What stands before the body in what is signed. */
  prefix: string;
  /** Of which one must be right: 64 hexadecimal digits each, in lower case. */
  signatures: string[];
}

const HMAC = { name: "HMAC", hash: "SHA-256" } as const;

export function importSecret(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", new TextEncoder().encode(secret), HMAC, false, ["sign"]);
}

/** @param keys of the secrets that are in force: one of them must have made the signature. */
export async function isSignatureValid(
  validator: Validator,
  keys: CryptoKey[],
  { headers, body }: SignedRequest,
  nowMs: number,
): Promise<boolean> {
  const claim = readClaim(validator, headers, nowMs);
  if (!claim || claim.signatures.length === 0) return false;
  const signed = withPrefix(claim.prefix, body);
  const macs = await Promise.all(keys.map((key) => crypto.subtle.sign(HMAC, key, signed)));
  let found = false;
  for (const mac of macs.map(hexOf)) {
    for (const signature of claim.signatures) {
      if (equalInConstantTime(mac, signature)) found = true;
    }
  }
  return found;
}

/** @returns null when there is none, or when it is of another time. */
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

/** Those of other schemes, and what is no signature at all, are nobody's. */
function parseSignatures(line: string | null, scheme: string): string[] {
  return parseValues(line, scheme)
    .filter((value) => /^[0-9a-f]{64}$/i.test(value))
    .slice(0, SIGNATURES_MAX)
    .map((value) => value.toLowerCase());
}

/** `name=value` pairs with commas between them. */
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

function withPrefix(prefix: string, body: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (prefix === "") return body;
  const start = new TextEncoder().encode(prefix);
  const whole = new Uint8Array(start.byteLength + body.byteLength);
  whole.set(start);
  whole.set(body, start.byteLength);
  return whole;
}

function hexOf(mac: ArrayBuffer): string {
  return Array.from(new Uint8Array(mac), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
