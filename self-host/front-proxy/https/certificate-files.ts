/** A certificate in files, which another program may replace while the server runs. */
import { readFile } from "node:fs/promises";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { DAY_MS, MINUTE_MS } from "../../../shared/time.ts";
import { getErrorMessage } from "../../../shared/error-message.ts";

export interface CertificatePaths {
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

/** Reads the files at intervals. Files that can't be used are reported once, and the last usable pair stays in use. */
export class CertificateFiles {
  readonly #paths: CertificatePaths;
  keyPair: KeyPair;
  #certificate: X509Certificate;
  #problem: string | undefined;

  constructor(paths: CertificatePaths, keyPair: KeyPair) {
    this.#paths = paths;
    this.keyPair = keyPair;
    this.#certificate = new X509Certificate(keyPair.cert);
  }

  isFor(name: string): boolean {
    return this.#certificate.checkHost(name) !== undefined;
  }

  /** @returns a function that ends it. */
  watch(handleChange: (keyPair: KeyPair) => void, intervalMs = READ_INTERVAL_MS): () => void {
    const timer = setInterval(() => void this.#read(handleChange), intervalMs).unref();
    return () => clearInterval(timer);
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

/** A certificate that expires sooner was probably not renewed: issuers renew theirs 30 days before. */
const RENEWED_BEFORE_MS = 14 * DAY_MS;

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
  if (certificate.validToDate.getTime() - nowMs < RENEWED_BEFORE_MS)
    problems.push(
      `the certificate of HTTPS_CERTIFICATE_FILE expires at ${certificate.validToDate.toISOString()}`,
    );
  return problems;
}
