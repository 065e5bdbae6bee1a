/**
 * The certificate authorities of `--ca-file`, which the agent trusts besides those of Node.js. Every TLS connection to the
 * server, to its relays and to proxies uses this context.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import * as tls from "node:tls";
import { explainError } from "../error-message.ts";
import { UsageError } from "../options.ts";

/** The certificates of all public authorities together take a quarter of a mebibyte. */
const FILE_MAX_BYTES = 4 * 1024 * 1024;
const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

export class TrustedAuthorities {
  /** Each in PEM. */
  readonly certificates: readonly string[];
  #context: tls.SecureContext | undefined;

  constructor(certificates: readonly string[]) {
    this.certificates = certificates;
  }

  /** Made once: parsing all authorities takes milliseconds, and each connection would do it again. */
  get secureContext(): tls.SecureContext {
    this.#context ??= tls.createSecureContext({
      ca: [...getDefaultCertificates(), ...this.certificates],
    });
    return this.#context;
  }
}

/** @throws UsageError when the file can't be read, or contains no certificates in PEM. */
export async function readAuthorities(path: string): Promise<TrustedAuthorities> {
  const certificates = (await readCertificateFile(path)).match(CERTIFICATES) ?? [];
  if (certificates.length === 0) {
    throw new UsageError(
      `the CA file ${path} has no certificate in PEM format; convert it: openssl x509 -in ${path} -out ca.pem`,
    );
  }
  if (!certificates.every(isCertificate)) {
    throw new UsageError(
      `the CA file ${path} has a damaged certificate; get the file again from the operator of the CA`,
    );
  }
  return new TrustedAuthorities(certificates);
}

async function readCertificateFile(path: string): Promise<string> {
  let problem: string;
  try {
    const stats = await stat(path);
    if (!stats.isDirectory() && stats.size <= FILE_MAX_BYTES) return await readFile(path, "latin1");
    problem = stats.isDirectory()
      ? `${path} is a directory; name a file`
      : `${path} is too large for certificates; name another file`;
  } catch (error) {
    problem = explainError(error);
  }
  throw new UsageError(`can't read the CA file: ${problem}`);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

/** The authorities that Node.js trusts without the file: a context with authorities of its own does not include them. */
function getDefaultCertificates(): readonly string[] {
  // Since Node.js 22.15.
  const { getCACertificates } = tls as Partial<typeof tls>;
  if (getCACertificates) return getCACertificates("default");
  return [...tls.rootCertificates, ...readExtraCertificates()];
}

/** Node.js has warned at its start about a file that it can't read. */
function readExtraCertificates(): string[] {
  const path = process.env["NODE_EXTRA_CA_CERTS"];
  if (path === undefined || path === "") return [];
  try {
    return readFileSync(path, "latin1").match(CERTIFICATES) ?? [];
  } catch {
    return [];
  }
}
