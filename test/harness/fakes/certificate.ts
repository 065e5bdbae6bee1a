/** Creates certificates for TLS servers of tests. */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { DAY_MS } from "../../../shared/time.ts";

export interface Certificate {
  /** Both in PEM. */
  key: string;
  cert: string;
  commonName: string;
}

interface CertificateOptions {
  /** Default: `localhost`, which is also for 127.0.0.1. */
  commonName?: string;
  /** Further names that it is for. */
  names?: string[];
  /** SubjectPublicKeyInfo in DER. Default: that of a new key. */
  subjectKey?: Uint8Array;
  /** Default: it signs itself, and can sign others. */
  issuer?: Certificate;
  /** Default: a day before and after now. */
  validFromMs?: number;
  validToMs?: number;
}

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OID = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;

/** One value of DER: tag, length, content. */
function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const oid = (hex: string) => der(OID, Buffer.from(hex, "hex"));
const ECDSA_WITH_SHA256 = der(SEQUENCE, oid("2a8648ce3d040302"));
const COMMON_NAME = oid("550403");
const SUBJECT_ALT_NAME = oid("551d11");
const BASIC_CONSTRAINTS = oid("551d13");

/** For `localhost` and 127.0.0.1, valid now and signed by itself, unless the options say otherwise. */
export function createCertificate({
  commonName = "localhost",
  names = [],
  subjectKey,
  issuer,
  validFromMs = Date.now() - DAY_MS,
  validToMs = Date.now() + DAY_MS,
}: CertificateOptions = {}): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const validity = der(SEQUENCE, utcTime(validFromMs), utcTime(validToMs));
  const subjects = der(
    SEQUENCE,
    ...[commonName, ...names].map((name) => der(0x82, Buffer.from(name))),
    ...(commonName === "localhost" ? [der(0x87, Buffer.from([127, 0, 0, 1]))] : []),
  );
  const authority = der(SEQUENCE, Buffer.from([0x01, 0x01, 0xff]));
  const extensions = der(
    SEQUENCE,
    der(SEQUENCE, SUBJECT_ALT_NAME, der(OCTET_STRING, subjects)),
    ...(issuer ? [] : [der(SEQUENCE, BASIC_CONSTRAINTS, der(OCTET_STRING, authority))]),
  );
  const body = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, Buffer.from([1, ...randomBytes(8)])),
    ECDSA_WITH_SHA256,
    encodeName(issuer?.commonName ?? commonName),
    validity,
    encodeName(commonName),
    Buffer.from(subjectKey ?? publicKey.export({ type: "spki", format: "der" })),
    der(0xa3, extensions),
  );
  const signature = der(
    BIT_STRING,
    Buffer.from([0]),
    sign("sha256", body, issuer?.key ?? privateKey),
  );
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: pem(der(SEQUENCE, body, ECDSA_WITH_SHA256, signature)),
    commonName,
  };
}

function encodeName(commonName: string): Buffer {
  return der(
    SEQUENCE,
    der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8_STRING, Buffer.from(commonName)))),
  );
}

function utcTime(at: number): Buffer {
  const digits = new Date(at).toISOString().replace(/\D/g, "").slice(2, 14);
  return der(UTC_TIME, Buffer.from(`${digits}Z`));
}

function pem(bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
