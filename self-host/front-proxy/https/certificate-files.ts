/** A certificate in files, which another program may replace while the server runs. */
import { readFile } from "node:fs/promises";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { DAY_MS, MINUTE_MS } from "../../../shared/time.ts";
import { getErrorMessage } from "../../../shared/error-message.ts";

interface CertificatePaths {
  certificateFile: string;
  keyFile: string;
}

/** In PEM. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** @throws Error that names the setting, when a file can't be read, or both do not belong together. */
export async function readKeyPair({
  certificateFile,
  keyFile,
}: CertificatePaths): Promise<KeyPair> {
  const cert = await readFileOfSetting("HTTPS_CERTIFICATE_FILE", certificateFile);
  const key = await readFileOfSetting("HTTPS_KEY_FILE", keyFile);
  try {
    // Empty files, which another program is just writing, would give a context that fails each handshake.
    createPrivateKey(key);
    createSecureContext({ cert, key });
    new X509Certificate(cert);
  } catch (error) {
    throw new Error(
      `HTTPS_CERTIFICATE_FILE, HTTPS_KEY_FILE: not a certificate and its private key in PEM: ${getErrorMessage(error)}`,
      { cause: error },
    );
  }
  return { cert, key };
}

async function readFileOfSetting(setting: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new Error(`${setting}: ${path} can't be read: ${getErrorMessage(error)}`, {
      cause: error,
    });
  }
}

/** How often the files are read. */
const READ_INTERVAL_MS = MINUTE_MS;
/** How often the log warns of a certificate that expires soon. The start has warned of it already. */
const WARN_INTERVAL_MS = DAY_MS;
/** A certificate that expires sooner was probably not renewed: issuers renew theirs 30 days before. */
const RENEWED_BEFORE_MS = 14 * DAY_MS;

/** Reads the files at intervals. Files that can't be used are reported once, and the last usable pair stays in use. */
export class CertificateFiles {
  readonly #paths: CertificatePaths;
  keyPair: KeyPair;
  #certificate: X509Certificate;
  #problem: string | undefined;
  readonly #now: () => number;
  #warnedAtMs: number;

  /** @param now milliseconds since the epoch. */
  constructor(paths: CertificatePaths, keyPair: KeyPair, now = Date.now) {
    this.#paths = paths;
    this.keyPair = keyPair;
    this.#certificate = new X509Certificate(keyPair.cert);
    this.#now = now;
    this.#warnedAtMs = now();
  }

  /** In ms since the epoch. */
  get expiresAtMs(): number {
    return this.#certificate.validToDate.getTime();
  }

  isFor(name: string): boolean {
    return this.#certificate.checkHost(name) !== undefined;
  }

  /** @returns a function that ends it. */
  watch(handleChange: (keyPair: KeyPair) => void, intervalMs = READ_INTERVAL_MS): () => void {
    const timer = setInterval(() => {
      void this.#read(handleChange).then(() => this.#warnOfExpiry());
    }, intervalMs).unref();
    return () => clearInterval(timer);
  }

  #warnOfExpiry(): void {
    const nowMs = this.#now();
    // Also when the clock was set back.
    if (Math.abs(nowMs - this.#warnedAtMs) < WARN_INTERVAL_MS) return;
    this.#warnedAtMs = nowMs;
    const problem = findExpiry(this.#certificate, nowMs);
    if (problem !== undefined) console.error(`${problem}`);
  }

  async #read(handleChange: (keyPair: KeyPair) => void): Promise<void> {
    try {
      const { cert, key } = await readKeyPair(this.#paths);
      this.#problem = undefined;
      if (cert === this.keyPair.cert && key === this.keyPair.key) return;
      this.keyPair = { cert, key };
      this.#certificate = new X509Certificate(cert);
      handleChange(this.keyPair);
      console.log("the certificate was replaced");
    } catch (error) {
      // For a moment the two files can be of different certificates.
      const problem = getErrorMessage(error);
      if (problem !== this.#problem)
        console.error(`${problem}; the previous certificate stays in use`);
      this.#problem = problem;
    }
  }
}

/** @returns a line for each reason why browsers refuse this certificate for one of the names, now or soon. */
export function findCertificateProblems(
  cert: string,
  names: readonly string[],
  nowMs: number,
): string[] {
  const certificate = new X509Certificate(cert);
  const problems = names
    .filter((name) => certificate.checkHost(name) === undefined)
    .map((name) => `the certificate of HTTPS_CERTIFICATE_FILE is not for ${name}`);
  const expiry = findExpiry(certificate, nowMs);
  return expiry === undefined ? problems : [...problems, expiry];
}

/** @returns a line when the certificate has expired, or expires soon. */
function findExpiry({ validToDate }: X509Certificate, nowMs: number): string | undefined {
  const leftMs = validToDate.getTime() - nowMs;
  if (leftMs >= RENEWED_BEFORE_MS) return undefined;
  const verb = leftMs > 0 ? "expires" : "expired";
  return `the certificate of HTTPS_CERTIFICATE_FILE ${verb} at ${validToDate.toISOString()}`;
}
