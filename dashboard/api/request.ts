/** One request to the API, and its errors as messages for the user. */
import { formatRetryMessage, REQUEST_ID_HEADER } from "../../protocol/errors.ts";
import type { ErrorBody } from "../../protocol/schemas/error-body.ts";

/** What is wrong with one field of a request. */
export interface FieldError {
  /** As in `actions[2].path_prefix`. */
  path: string;
  message: string;
}

/** An error of the API with its code, and a message for the user. */
export class RequestError extends Error {
  override name = "RequestError";
  readonly code: ErrorBody["error"] | "unreachable";
  readonly fields: FieldError[];
  readonly retryAfterSeconds: number | undefined;
  /** Names the request in the server's log; null when no response arrived. */
  readonly requestId: string | null;

  constructor(body: Partial<ErrorBody>, requestId: string | null) {
    super(body.message ?? "The server can't be reached. Check your connection, then try again.");
    this.code = body.error ?? "unreachable";
    this.fields = body.fields ?? [];
    this.retryAfterSeconds = body.retry_after_seconds;
    this.requestId = requestId;
  }
}

interface SendOptions {
  /** Sent as JSON. */
  body?: unknown;
  bearer?: string | null;
  signal?: AbortSignal;
}

/** @throws RequestError when the response is an error, or there is none. */
export async function send<Answer>(
  method: string,
  path: string,
  { body, bearer = null, signal }: SendOptions = {},
): Promise<Answer> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (bearer !== null) headers.authorization = `Bearer ${bearer}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const init = { method, headers, body: JSON.stringify(body), ...(signal && { signal }) };
  const [response, answer] = await fetch(path, init)
    .then(async (got): Promise<[Response, unknown]> => [got, await readAnswer(got)])
    .catch((error: unknown) => {
      throw signal?.aborted ? error : new RequestError({}, null);
    });
  if (response.ok) return answer as Answer;
  throw new RequestError(answer as ErrorBody, response.headers.get(REQUEST_ID_HEADER));
}

/** Almost all responses are JSON; curl commands and counters of Prometheus are text. */
function readAnswer(response: Response): Promise<unknown> {
  const type = response.headers.get("content-type") ?? "";
  return type.startsWith("text/") ? response.text() : response.json();
}

/** Whether the selected organization has no such thing. */
export function isNotFound(error: unknown): boolean {
  return error instanceof RequestError && error.code === "not_found";
}

/** Whether the same request can succeed a moment later, because the server could not be reached or was unavailable. */
export function isTemporaryError(error: unknown): boolean {
  return (
    error instanceof RequestError && (error.code === "unreachable" || error.code === "unavailable")
  );
}

/** The message to show to the user. An error of the page itself is reported to the browser, and gets a general one. */
export function getUserMessage(error: unknown): string {
  if (!(error instanceof RequestError)) {
    reportError(error);
    return "Something went wrong on this page. Please reload it.";
  }
  if (error.retryAfterSeconds === undefined) return error.message;
  return formatRetryMessage(error.message, error.retryAfterSeconds);
}
