/** The credential of an agent, as bytes (docs/protocols/capability-token.md): a bincode struct, signed with Ed25519. */
import { BincodeError, BincodeReader, BincodeWriter } from "./bincode.ts";
import { toUtf8 } from "../../../shared/bytes.ts";
import type { SigningKeys } from "../keys.ts";
import { TOKEN_KINDS } from "../../../protocol/schemas/tokens.ts";

const TOKEN_BYTES_MAX = 16 * 1024;

const TOKEN_VERSION = 1;
type TokenKind = (typeof TOKEN_KINDS)[number];

export interface TokenPayload {
  kind: TokenKind;
  nonce: Uint8Array;
  organizationId: Uint8Array;
  keyId: string;
  /** The slug of the project that the token is restricted to. */
  project: string | null;
  allowedSubdomains: string[];
  tunnelQuota: number;
  bandwidthLimitMbps: number;
  issuedAtSeconds: number;
  expiresAtSeconds: number;
}

type TokenVerdict = { ok: TokenPayload } | { error: "malformed" | "bad_signature" | "expired" };

/** Domain separation: a signature of ours on other data is not valid for a token. */
const SIGNED_PREFIX = toUtf8("underpass capability token v1\0");
const NONCE_BYTES = 16;
const UUID_BYTES = 16;
const SIGNATURE_BYTES = 64;

export async function signCapabilityToken(
  payload: Omit<TokenPayload, "keyId">,
  keys: SigningKeys,
): Promise<Uint8Array<ArrayBuffer>> {
  const { kid, key } = keys.signer;
  const encoded = encodePayload({ ...payload, keyId: kid });
  const signature = await crypto.subtle.sign("Ed25519", key, signedBytes(encoded));
  const writer = new BincodeWriter();
  writer.fixed(encoded);
  writer.bytes(new Uint8Array(signature));
  return writer.finish();
}

export async function verifyCapabilityToken(
  bytes: Uint8Array,
  keys: SigningKeys,
  nowMs: number,
): Promise<TokenVerdict> {
  const token = decodeCapabilityToken(bytes);
  if (!token) return { error: "malformed" };
  const key = keys.verifiers.get(token.payload.keyId);
  const isGenuine =
    key && (await crypto.subtle.verify("Ed25519", key, token.signature, token.signed));
  if (!isGenuine) return { error: "bad_signature" };
  if (token.payload.expiresAtSeconds * 1000 <= nowMs) return { error: "expired" };
  return { ok: token.payload };
}

interface DecodedToken {
  payload: TokenPayload;
  signature: Uint8Array<ArrayBuffer>;
  /** The bytes that the signature covers. */
  signed: Uint8Array<ArrayBuffer>;
}

/** Decodes without verifying. @returns null unless the bytes are exactly one token. */
export function decodeCapabilityToken(bytes: Uint8Array): DecodedToken | null {
  if (bytes.byteLength > TOKEN_BYTES_MAX) return null;
  try {
    const reader = new BincodeReader(bytes);
    const payload = readPayload(reader);
    const signed = signedBytes(bytes.subarray(0, reader.position));
    const signature = reader.bytes();
    if (signature.byteLength !== SIGNATURE_BYTES || !reader.atEnd) return null;
    return { payload, signature, signed };
  } catch (error) {
    if (error instanceof BincodeError) return null;
    throw error;
  }
}

function encodePayload(payload: TokenPayload): Uint8Array {
  const writer = new BincodeWriter();
  writer.u32(TOKEN_VERSION);
  writer.u32(TOKEN_KINDS.indexOf(payload.kind));
  writer.fixed(payload.nonce);
  writer.fixed(payload.organizationId);
  writer.string(payload.keyId);
  writer.option(payload.project, (slug) => writer.string(slug));
  writer.list(payload.allowedSubdomains, (pattern) => writer.string(pattern));
  writer.u32(payload.tunnelQuota);
  writer.u32(payload.bandwidthLimitMbps);
  writer.i64(BigInt(payload.issuedAtSeconds));
  writer.i64(BigInt(payload.expiresAtSeconds));
  return writer.finish();
}

function readPayload(reader: BincodeReader): TokenPayload {
  const version = reader.u32();
  if (version !== TOKEN_VERSION) throw new BincodeError(`version ${version}`);
  const kind = TOKEN_KINDS[reader.u32()];
  if (kind === undefined) throw new BincodeError("unknown kind");
  return {
    kind,
    nonce: reader.fixed(NONCE_BYTES),
    organizationId: reader.fixed(UUID_BYTES),
    keyId: reader.string(),
    project: reader.option(() => reader.string()),
    allowedSubdomains: reader.list(() => reader.string()),
    tunnelQuota: reader.u32(),
    bandwidthLimitMbps: reader.u32(),
    issuedAtSeconds: Number(reader.i64()),
    expiresAtSeconds: Number(reader.i64()),
  };
}

function signedBytes(encodedPayload: Uint8Array): Uint8Array<ArrayBuffer> {
  const signed = new Uint8Array(SIGNED_PREFIX.byteLength + encodedPayload.byteLength);
  signed.set(SIGNED_PREFIX);
  signed.set(encodedPayload, SIGNED_PREFIX.byteLength);
  return signed;
}
