/** The service's API, asked with this agent's capability token. */
import { EnvHttpProxyAgent, fetch } from "undici";
import { z, type ZodType } from "zod";
import { RejectionError } from "./tunnel-connection.ts";

/** No answer, or one that says to come back. */
export class UnreachableError extends Error {
  override name = "Unreachable";
}

export interface CallOptions {
  signal: AbortSignal;
  body?: unknown;
  /** How long the server may wait by its own intent: a long poll. */
  waitMs?: number;
}

/** How long an answer may take beyond that. */
const ANSWER_MAX_MS = 20_000;
const Failure = z.object({ error: z.string(), message: z.string() });

export class ServiceApi {
  readonly #server: URL;
  readonly #token: Buffer;
  readonly #dispatcher = new EnvHttpProxyAgent();

  constructor(server: URL, token: Buffer) {
    this.#server = server;
    this.#token = token;
  }

  /** @throws Rejected when asking again would change nothing, Unreachable when it may. */
  async call<Schema extends ZodType>(
    schema: Schema,
    method: string,
    path: string,
    { signal, body, waitMs = 0 }: CallOptions,
  ): Promise<z.output<Schema>> {
    const timeout = AbortSignal.timeout(waitMs + ANSWER_MAX_MS);
    const answer = await this.#fetch(method, path, body, AbortSignal.any([signal, timeout]));
    const { status } = answer;
    if (status === 429 || status >= 500) throw new UnreachableError(messageFrom(answer));
    if (status >= 400) {
      const failure = Failure.safeParse(answer.body);
      throw new RejectionError(failure.data?.error ?? String(status), messageFrom(answer));
    }
    const parsed = schema.safeParse(answer.body);
    if (!parsed.success)
      throw new UnreachableError(`${this.#server.origin} is not an Underpass server`);
    return parsed.data;
  }

  async #fetch(method: string, path: string, body: unknown, signal: AbortSignal) {
    try {
      const answer = await fetch(new URL(path, this.#server).href, {
        method,
        headers: {
          authorization: `Bearer ${this.#token.toString("base64")}`,
          accept: "application/json",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: "manual",
        signal,
        dispatcher: this.#dispatcher,
      });
      return { status: answer.status, body: await answer.json() };
    } catch (error) {
      throw new UnreachableError(innermostMessage(error));
    }
  }
}

function messageFrom({ status, body }: { status: number; body: unknown }): string {
  return Failure.safeParse(body).data?.message ?? `the server answered ${status}`;
}

/** The innermost cause says what happened. */
function innermostMessage(error: unknown): string {
  let reason = error;
  while (reason instanceof Error && reason.cause instanceof Error) reason = reason.cause;
  return reason instanceof Error ? reason.message || reason.name : String(reason);
}
