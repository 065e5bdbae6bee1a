/** Calls of the service's API, with this agent's capability token or another credential. */
import type { Dispatcher } from "undici";
import { z, type ZodType } from "zod";
import { formatRetryMessage, REQUEST_ID_HEADER } from "../protocol/errors.ts";
import { describeOtherAnswer, explainError } from "./error-message.ts";
import { createDispatcher } from "./outgoing/dispatcher.ts";
import type { ServerAccess, ServerEndpoint } from "./server-access.ts";
import { RejectionError } from "./rejection-error.ts";
import { describeUnreadableAnswer } from "./update-advice.ts";

/** The API did not answer, which has a `cause`, or asked to try again later. */
export class RetryableError extends Error {
  override name = "RetryableError";
}

interface CallOptions {
  signal: AbortSignal;
  body?: unknown;
  /** How long the server may hold the request open: a long poll. */
  waitMs?: number;
}

export type ExplainRejection = (rejection: RejectionError) => RejectionError;

/**
 * For a capability token. The API does not say why it refuses one, and its message is also for programs that send other kinds of
 * bearer tokens.
 */
export const TOKEN_NOT_ACCEPTED =
  "the server does not accept this machine's token: it is not a token for agents of this server, was revoked, or has expired";

/** How long a response may take, beyond the time for which the server may hold the request open. */
export const ANSWER_MAX_MS = 20_000;
/** The body of every error of the API, with any code: the server may be newer than this agent. */
export const AnyErrorBody = z.object({
  error: z.string(),
  message: z.string(),
  fields: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  retry_after_seconds: z.number().optional(),
});

export class ServiceApi {
  readonly #server: URL;
  readonly #bearer: string;
  readonly #renewal: string | undefined;
  readonly #dispatcher: Dispatcher;
  readonly #explain: ExplainRejection;

  /**
   * @param credential the bytes of a capability token, or the bearer itself.
   * @param explain adds to a rejection what the user can do about it.
   */
  constructor(
    { server, authorities, renewal }: ServerEndpoint & Partial<ServerAccess>,
    credential: Buffer | string,
    explain: ExplainRejection = (rejection) => rejection,
  ) {
    this.#explain = explain;
    this.#renewal = renewal;
    this.#server = server;
    this.#bearer = typeof credential === "string" ? credential : credential.toString("base64");
    this.#dispatcher = createDispatcher(authorities);
  }

  /** @throws RejectionError when a retry can't succeed, RetryableError when it may. */
  async call<Schema extends ZodType>(
    schema: Schema,
    method: Dispatcher.HttpMethod,
    path: string,
    { signal, body, waitMs = 0 }: CallOptions,
  ): Promise<z.output<Schema>> {
    const timeout = AbortSignal.timeout(waitMs + ANSWER_MAX_MS);
    const response = await this.#request(method, path, body, AbortSignal.any([signal, timeout]));
    const { status } = response;
    if (status === 429 || status >= 500) throw new RetryableError(describeAnswer(response));
    if (status >= 400) {
      const failure = AnyErrorBody.safeParse(response.body);
      const reason = failure.data?.error ?? String(status);
      const isInvalidToken = reason === "unauthorized" && this.#renewal !== undefined;
      const explanation = isInvalidToken ? TOKEN_NOT_ACCEPTED : describeAnswer(response);
      throw this.#explain(new RejectionError(reason, explanation, { renewal: this.#renewal }));
    }
    const parsed = schema.safeParse(response.body);
    if (parsed.success) return parsed.data;
    if (response.isOfApi)
      throw new RejectionError("unsupported_version", describeUnreadableAnswer(this.#server));
    throw new RetryableError(
      `${this.#server.origin} is not an Underpass server; check the address`,
    );
  }

  async #request(method: Dispatcher.HttpMethod, path: string, body: unknown, signal: AbortSignal) {
    try {
      // Not `fetch`: loading its code takes as long as all the rest of a short command.
      const response = await this.#dispatcher.request({
        origin: this.#server.origin,
        path,
        method,
        headers: {
          authorization: `Bearer ${this.#bearer}`,
          accept: "application/json",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal,
      });
      const responseBody: unknown = await response.body.json().catch(ignoreSyntaxError);
      const isOfApi = responseBody !== undefined && REQUEST_ID_HEADER in response.headers;
      return { status: response.statusCode, body: responseBody, isOfApi };
    } catch (error) {
      throw new RetryableError(explainError(error), { cause: error });
    }
  }
}

/** An error page of a proxy is not JSON: the status says enough. */
export function ignoreSyntaxError(error: unknown): undefined {
  if (!(error instanceof SyntaxError)) throw error;
}

/** The first invalid field and its rule, without the words that the message has around them. */
export function getErrorBodyMessage({
  message,
  fields: [field] = [],
  retry_after_seconds: retryAfterSeconds,
}: z.infer<typeof AnyErrorBody>): string {
  if (field && field.path !== "") return `${field.path} ${field.message}`;
  if (retryAfterSeconds === undefined) return message;
  return formatRetryMessage(message, retryAfterSeconds);
}

function describeAnswer({ status, body }: { status: number; body: unknown }): string {
  const failure = AnyErrorBody.safeParse(body).data;
  return failure ? getErrorBodyMessage(failure) : describeOtherAnswer(status, "the API's JSON");
}
