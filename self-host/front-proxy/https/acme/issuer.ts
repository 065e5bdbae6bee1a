/** Obtains certificates, and answers the authority's challenges meanwhile. */
import { fork } from "node:child_process";
import { join } from "node:path";
import { MINUTE_MS } from "../../../../shared/time.ts";
import type { KeyPair } from "../certificate-files.ts";
import type { OrderEvent, OrderRequest } from "./messages.ts";

/** An authority answers within seconds. */
const ORDER_MAX_MS = 2 * MINUTE_MS;
const CHALLENGE_PATH = "/.well-known/acme-challenge/";

export class Issuer {
  readonly #account: Omit<OrderRequest, "name">;
  /** By token. */
  readonly #keyAuthorizations = new Map<string, string>();

  constructor(account: Omit<OrderRequest, "name">) {
    this.#account = account;
  }

  /** @returns what a request for this path of plain HTTP is answered with, if it is that of a challenge (RFC 8555 section 8.3). */
  findAnswer(path: string): string | undefined {
    if (!path.startsWith(CHALLENGE_PATH)) return undefined;
    return this.#keyAuthorizations.get(path.slice(CHALLENGE_PATH.length));
  }

  /** Rejects with the authority's reason. */
  async issue(name: string): Promise<KeyPair> {
    const tokens: string[] = [];
    const { promise, resolve, reject } = Promise.withResolvers<KeyPair>();
    const child = fork(join(import.meta.dirname, "order.ts"), { timeout: ORDER_MAX_MS });
    child.on("message", (message) => {
      const event = message as OrderEvent;
      if (event.type === "failed") reject(new Error(event.reason));
      else if (event.type === "issued") resolve({ cert: event.cert, key: event.key });
      else {
        tokens.push(event.token);
        this.#keyAuthorizations.set(event.token, event.keyAuthorization);
        child.send("answered");
      }
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the order ended with code ${code}`)));
    child.send({ ...this.#account, name } satisfies OrderRequest);
    try {
      return await promise;
    } finally {
      for (const token of tokens) this.#keyAuthorizations.delete(token);
    }
  }
}
