/**
 * Certificates on demand: the first connection to a host of this server waits until one is issued. They are renewed before they
 * expire. Bounded, because anyone may begin a connection with any name.
 */
import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import { BoundedMap } from "../../../../shared/bounds/bounded-map.ts";
import { getErrorMessage } from "../../../../shared/error-message.ts";
import { MINUTE_MS } from "../../../../shared/time.ts";
import type { KeyPair } from "../certificate-files.ts";

const CONTEXTS_MAX = 1_000;
const UNAVAILABLE_MAX = 10_000;
/** Look-ups of names that have no certificate yet, at the same time, and orders. The handshake of a further name fails. */
const LOOK_UPS_MAX = 16;
const ORDERS_MAX = 4;
/** A name that is not of this server is not looked up again for this long. */
const UNKNOWN_MS = 10_000;
/** How long a name waits after its order has failed. Let's Encrypt allows five failed attempts an hour for a name. */
const FAILED_MS = 15 * MINUTE_MS;
/** How often certificates that expire soon are renewed, and those that are missing are ordered. */
const CHECK_INTERVAL_MS = 15 * MINUTE_MS;
/** A certificate is renewed when this part of its time is left. */
const RENEWED_PART = 1 / 3;
const NAME = /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*$/;

interface AcmeOptions {
  store: {
    listNames(): Promise<string[]>;
    read(name: string): Promise<KeyPair | undefined>;
    write(name: string, keyPair: KeyPair): Promise<void>;
    remove(name: string): Promise<void>;
  };
  issue(name: string): Promise<KeyPair>;
  /** Whether a host belongs to this server or to one of its tunnels. Rejects when that can't be known now. */
  isAllowed(name: string): Promise<boolean>;
  now?: () => number;
}

interface Certificate {
  context: SecureContext;
  /** In ms since the epoch. */
  validFromMs: number;
  validToMs: number;
}

export class AcmeCertificates {
  readonly #options: AcmeOptions;
  readonly #now: () => number;
  readonly #certificates = new BoundedMap<string, Certificate>(CONTEXTS_MAX);
  readonly #preparations = new Map<string, Promise<Certificate | undefined>>();
  /** Until when a name has no certificate, in ms since the epoch. */
  readonly #unavailable = new BoundedMap<string, number>(UNAVAILABLE_MAX);
  #lookUps = 0;
  #orders = 0;

  constructor(options: AcmeOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * @returns when the first certificate of these names expires, in ms since the epoch; undefined when no name has a certificate
   * yet.
   */
  findExpiryMs(names: readonly string[]): number | undefined {
    const times = names.flatMap((name) => this.#certificates.get(name)?.validToMs ?? []);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** @param serverName as the client sent it. @returns undefined when there is no certificate for it, and none can be had now. */
  async getContext(serverName: string): Promise<SecureContext | undefined> {
    const name = serverName.toLowerCase();
    const known = this.#certificates.get(name);
    if (known && this.#now() < known.validToMs) {
      this.#certificates.set(name, known);
      return known.context;
    }
    if (!NAME.test(name) || this.#isUnavailable(name)) return undefined;
    return (await this.#prepareOnce(name))?.context;
  }

  /** Orders and renews certificates, now and at intervals. @param names get a certificate before anyone connects. */
  start(names: readonly string[]): void {
    const check = () =>
      void this.#check(names).catch((error: unknown) =>
        console.error(`certificates can't be renewed: ${getErrorMessage(error)}`),
      );
    check();
    setInterval(check, CHECK_INTERVAL_MS).unref();
  }

  async #check(names: readonly string[]): Promise<void> {
    for (const name of names) await this.getContext(name);
    await this.renewAll();
  }

  /** Renews the stored certificates that expire soon, one after the other. */
  async renewAll(): Promise<void> {
    for (const name of await this.#options.store.listNames()) {
      await this.#renew(name).catch((error: unknown) =>
        console.error(`the certificate for ${name} can't be renewed: ${getErrorMessage(error)}`),
      );
    }
  }

  async #renew(name: string): Promise<void> {
    const stored = await this.#readStored(name);
    if ((stored && !this.#isDue(stored)) || this.#isUnavailable(name)) return;
    const isAllowed = await this.#options.isAllowed(name);
    if (isAllowed) await this.#order(name);
    // Its tunnel or domain may come back while the certificate is valid.
    else if (!stored || this.#now() > stored.validToMs) await this.#options.store.remove(name);
  }

  /** Not when the clock was set back since then. */
  #isUnavailable(name: string): boolean {
    const leftMs = (this.#unavailable.get(name) ?? 0) - this.#now();
    return leftMs > 0 && leftMs <= FAILED_MS;
  }

  #isDue({ validFromMs, validToMs }: Certificate): boolean {
    return this.#now() > validToMs - (validToMs - validFromMs) * RENEWED_PART;
  }

  #prepareOnce(name: string): Promise<Certificate | undefined> {
    const running = this.#preparations.get(name);
    if (running) return running;
    const preparation = this.#prepare(name)
      .catch((error: unknown) => {
        console.error(`no certificate for ${name}: ${getErrorMessage(error)}`);
        return undefined;
      })
      .finally(() => this.#preparations.delete(name));
    this.#preparations.set(name, preparation);
    return preparation;
  }

  async #prepare(name: string): Promise<Certificate | undefined> {
    const stored = await this.#readStored(name);
    if (stored && this.#now() < stored.validToMs) return this.#keep(name, stored);
    if (this.#lookUps >= LOOK_UPS_MAX) return undefined;
    this.#lookUps += 1;
    const isAllowed = await this.#options.isAllowed(name).finally(() => (this.#lookUps -= 1));
    if (isAllowed) return this.#order(name);
    this.#unavailable.set(name, this.#now() + UNKNOWN_MS);
    return undefined;
  }

  async #readStored(name: string): Promise<Certificate | undefined> {
    const keyPair = await this.#options.store.read(name);
    try {
      return keyPair && toCertificate(keyPair);
    } catch (error) {
      console.error(`the stored certificate for ${name} can't be used: ${getErrorMessage(error)}`);
      return undefined;
    }
  }

  async #order(name: string): Promise<Certificate | undefined> {
    if (this.#orders >= ORDERS_MAX) return undefined;
    this.#orders += 1;
    try {
      const keyPair = await this.#options.issue(name);
      const certificate = this.#keep(name, toCertificate(keyPair));
      console.log(`a certificate for ${name} was issued`);
      await this.#store(name, keyPair);
      return certificate;
    } catch (error) {
      this.#unavailable.set(name, this.#now() + FAILED_MS);
      const minutes = FAILED_MS / MINUTE_MS;
      console.error(
        `no certificate for ${name} was issued: ${getErrorMessage(error)}; it is ordered again in ${minutes} minutes at the earliest`,
      );
      return undefined;
    } finally {
      this.#orders -= 1;
    }
  }

  /** If that fails, the certificate is used until the server stops. */
  async #store(name: string, keyPair: KeyPair): Promise<void> {
    try {
      await this.#options.store.write(name, keyPair);
    } catch (error) {
      console.error(`the certificate for ${name} can't be stored: ${getErrorMessage(error)}`);
    }
  }

  #keep(name: string, certificate: Certificate): Certificate {
    this.#certificates.set(name, certificate);
    return certificate;
  }
}

function toCertificate({ cert, key }: KeyPair): Certificate {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return {
    context: createSecureContext({ cert, key, minVersion: "TLSv1.2" }),
    validFromMs: validFromDate.getTime(),
    validToMs: validToDate.getTime(),
  };
}
