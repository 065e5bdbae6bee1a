/** Obtains certificates, and answers the authority's challenges meanwhile. */
import { fork } from "node:child_process";
import { join } from "node:path";
import { MINUTE_MS, SECOND_MS } from "../../../../shared/time.ts";
import type { KeyPair } from "../certificate-files.ts";
import type { OrderEvent, OrderRequest } from "./messages.ts";

/** An authority answers within seconds. */
const ORDER_MAX_MS = 2 * MINUTE_MS;
const CHALLENGE_PATH = "/.well-known/acme-challenge/";

export class Issuer {
  readonly #account: Omit<OrderRequest, "name">;
  readonly #orderMaxMs: number;
  /** By token. */
  readonly #keyAuthorizations = new Map<string, string>();

  constructor(account: Omit<OrderRequest, "name">, orderMaxMs = ORDER_MAX_MS) {
    this.#account = account;
    this.#orderMaxMs = orderMaxMs;
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
    const child = fork(join(import.meta.dirname, "order.ts"), { timeout: this.#orderMaxMs });
    // Only a program that was started has a channel for messages.
    child.once("spawn", () => child.send({ ...this.#account, name } satisfies OrderRequest));
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
    // One for each message that can't be sent, too.
    child.on("error", reject);
    child.once("exit", (code, signal) => {
      const reason = child.killed
        ? `it took longer than ${this.#orderMaxMs / SECOND_MS} seconds`
        : `the program that obtains it ended with ${signal ?? `code ${code}`}`;
      reject(new Error(reason));
    });
    try {
      return await promise;
    } finally {
      for (const token of tokens) this.#keyAuthorizations.delete(token);
    }
  }
}
