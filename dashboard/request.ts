/** One request to the API, and its errors as messages for the user. */
import type { ErrorBody } from "../protocol/errors.ts";

/** An error of the API with its code, and a message for the user. */
export class RequestError extends Error {
  readonly code: ErrorBody["error"] | "unreachable";
  readonly fields: { path: string; message: string }[];
  readonly retryAfterSeconds: number | undefined;

  constructor(body: Partial<ErrorBody>) {
    super(body.message ?? "The server can't be reached. Check your connection, then try again.");
    this.code = body.error ?? "unreachable";
    this.fields = body.fields ?? [];
    this.retryAfterSeconds = body.retry_after_seconds;
  }
}

/** @throws RequestError when the response is an error, or there is none. */
export async function send<Answer>(
  method: string,
  path: string,
  body?: unknown,
  bearer: string | null = null,
): Promise<Answer> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (bearer !== null) headers.authorization = `Bearer ${bearer}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const init = { method, headers, body: JSON.stringify(body) };
  const [response, answer] = await fetch(path, init)
    .then(async (got): Promise<[Response, unknown]> => [got, await got.json()])
    .catch(() => {
      throw new RequestError({});
    });
  if (!response.ok) throw new RequestError(answer as ErrorBody);
  return answer as Answer;
}

/** The message to show to the user. */
export function getErrorMessage(error: unknown): string {
  if (!(error instanceof RequestError)) {
    reportError(error);
    return "Something went wrong on this page. Please reload it.";
  }
  if (error.retryAfterSeconds === undefined) return error.message;
  return `${error.message} Try again in ${error.retryAfterSeconds} seconds.`;
}
