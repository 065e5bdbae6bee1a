/** `POST /argon2`: hashes a password on a thread of its own, because workerd serves everything with a single one. */
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { z } from "zod";
import { ROOT } from "../build/build.ts";
import { parseJson } from "../../shared/json.ts";
import type { HashRequest, HashResponse } from "./argon2-thread.ts";
import { type GatewayResponse, buildErrorResponse } from "./response.ts";

const HashParameters = z.object({
  secret: z.base64(),
  salt: z.base64(),
  memoryCost: z.int().min(8).max(65_536),
  timeCost: z.int().min(1).max(10),
  parallelism: z.int().min(1).max(4),
  hashLength: z.int().min(16).max(64),
});

/** Limits of the thread's heap, which does not contain the memory of a hash. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 };

export class Argon2 {
  #thread: Worker | undefined;
  /** One for each request that the thread has not answered, in their order. */
  #waiting: PromiseWithResolvers<HashResponse>[] = [];

  /** Secret, salt and hash are in base64. */
  async handle(body: string): Promise<GatewayResponse> {
    const request = HashParameters.safeParse(parseJson(body)).data;
    if (!request) return buildErrorResponse(400, "the body must be {secret, salt} and the costs");
    const response = await this.#ask({
      message: Buffer.from(request.secret, "base64"),
      nonce: Buffer.from(request.salt, "base64"),
      memory: request.memoryCost,
      passes: request.timeCost,
      parallelism: request.parallelism,
      tagLength: request.hashLength,
    });
    if ("error" in response) throw new Error(`the password could not be hashed: ${response.error}`);
    const hash = Buffer.from(response.hash).toString("base64");
    return { status: 200, body: JSON.stringify({ hash }) };
  }

  async close(): Promise<void> {
    await this.#thread?.terminate();
  }

  #ask(request: HashRequest): Promise<HashResponse> {
    const thread = (this.#thread ??= this.#start());
    const answer = Promise.withResolvers<HashResponse>();
    this.#waiting.push(answer);
    thread.postMessage(request);
    return answer.promise;
  }

  #start(): Worker {
    const thread = new Worker(join(ROOT, "self-host/gateway/argon2-thread.ts"), {
      resourceLimits: THREAD_LIMITS,
    });
    thread.on("message", (response: HashResponse) => this.#waiting.shift()?.resolve(response));
    let reason = "the thread has ended";
    thread.on("error", (error) => (reason = String(error)));
    // Another request starts another thread.
    thread.once("exit", () => {
      this.#thread = undefined;
      for (const { resolve } of this.#waiting.splice(0)) resolve({ error: reason });
    });
    thread.unref();
    return thread;
  }
}
