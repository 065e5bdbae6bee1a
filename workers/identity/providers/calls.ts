/**
 * How providers are called. They are the operator's choice, so unlike what tenants name they may be on a
 * private address, and without TLS where the setting says `http://`.
 */
import {
  allowInsecureRequests,
  customFetch,
  OperationProcessingError,
  ResponseBodyError,
} from "oauth4webapi";
import { PROVIDER_ANSWER_MAX_BYTES, PROVIDER_CALL_MAX_MS } from "../../../protocol/limits.ts";
import type { Env } from "../../env.ts";

/** Options for the calls of oauth4webapi. @param configured the address in the settings. */
export function callOptions({ OPERATOR_NETWORK: network }: Env, configured: URL) {
  const send = network ? network.fetch.bind(network) : fetch;
  return {
    [allowInsecureRequests]: configured.protocol === "http:",
    [customFetch]: (url: string, init: RequestInit) => boundedFetch(send, url, init),
    // Code hosts refuse requests that don't say who they are.
    headers: { "user-agent": "Underpass" },
  };
}

async function boundedFetch(
  send: (url: string, init: RequestInit) => Promise<Response>,
  url: string,
  init: RequestInit,
): Promise<Response> {
  const signal = AbortSignal.timeout(PROVIDER_CALL_MAX_MS);
  const response = await send(url, { ...init, signal });
  const body = await readBody(response, signal);
  const headers = new Headers(response.headers);
  // It is read, so it is plain text by now.
  headers.delete("content-encoding");
  return new Response(body.size === 0 ? null : body, { status: response.status, headers });
}

async function readBody({ body, url }: Response, signal: AbortSignal): Promise<Blob> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = (body as ReadableStream<Uint8Array<ArrayBuffer>> | null)?.getReader();
  const abort = () => void reader?.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", abort);
  for (;;) {
    const chunk = await reader?.read();
    signal.throwIfAborted();
    if (!chunk || chunk.done) break;
    bytes += chunk.value.byteLength;
    if (bytes > PROVIDER_ANSWER_MAX_BYTES) {
      await reader?.cancel();
      throw new Error(`${url} answers with more than ${PROVIDER_ANSWER_MAX_BYTES} bytes`);
    }
    chunks.push(chunk.value);
  }
  signal.removeEventListener("abort", abort);
  return new Blob(chunks);
}

const ERROR_CODE_MAX_CHARS = 100;
const REFUSED_CODE = ["invalid_grant", "bad_verification_code"];

/** Whether a provider says that a code is not, or no longer, good. Code hosts say so with status 200. */
export function isRefusedCode(failure: unknown): boolean {
  if (failure instanceof ResponseBodyError) return REFUSED_CODE.includes(failure.error);
  if (!(failure instanceof OperationProcessingError)) return false;
  const { body } = (failure.cause ?? {}) as { body?: { error?: unknown } };
  return typeof body?.error === "string" && REFUSED_CODE.includes(body.error);
}

/** For the log. Neither causes nor bodies: tokens are among what they hold. */
export function describeFailure(failure: unknown): string {
  if (!(failure instanceof Error)) return "not an error";
  const { name, message } = failure;
  if (failure instanceof ResponseBodyError) {
    // `invalid_client`, most of all: the operator's settings are wrong.
    return `${name}: the provider says ${failure.error.slice(0, ERROR_CODE_MAX_CHARS)}`;
  }
  return failure instanceof OperationProcessingError
    ? `${name}: ${message} (${failure.code})`
    : `${name}: ${message}`;
}
