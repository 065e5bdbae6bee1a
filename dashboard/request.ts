/** One request to the API, and what its failures are to a person. */
import type { ErrorBody } from "../protocol/errors.ts";

/** A failure with its code and the words for whoever sits there. */
export class Problem extends Error {
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

/** @throws Problem for every answer that is not a success, and for none at all. */
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
      throw new Problem({});
    });
  if (!response.ok) throw new Problem(answer as ErrorBody);
  return answer as Answer;
}

/** What a person is told of a failure. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Problem)) {
    reportError(error);
    return "Something went wrong on this page. Reload it.";
  }
  if (error.retryAfterSeconds === undefined) return error.message;
  return `${error.message} Try again in ${error.retryAfterSeconds} s.`;
}
