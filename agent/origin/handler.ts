/**
 * A function as the local server: each request of a visitor is one call with a `Request` of the Fetch standard, and no port
 * is open. It is a dispatcher like undici's pool of connections, so that requests to both are forwarded by the same code.
 */
import type { Readable } from "node:stream";
import { ReadableStream } from "node:stream/web";
import type { Dispatcher } from "undici";
import { headerPairs } from "../../shared/raw-headers.ts";
import type { RequestHandler } from "../library/types.ts";
import type { LocalContext, LocalDispatcher } from "./target.ts";

/** The codings that `fetch` decodes while it leaves their header in place. */
const DECODED_BY_FETCH = /^(?:x-)?gzip$|^deflate$|^br$/i;

export class HandlerDispatcher implements LocalDispatcher {
  readonly #handler: RequestHandler;
  readonly #context: LocalContext;

  constructor(handler: RequestHandler, context: LocalContext) {
    this.#handler = handler;
    this.#context = context;
  }

  dispatch(request: Dispatcher.DispatchOptions, sink: Dispatcher.DispatchHandler): void {
    void this.#serve(request, sink);
  }

  /** The connection that the requests came from aborts them when it ends. */
  destroy(): Promise<void> {
    return Promise.resolve();
  }

  /** Calls `onComplete` or `onError` once the function's work for the request has ended, also if the visitor left before. */
  async #serve(
    options: Dispatcher.DispatchOptions,
    sink: Dispatcher.DispatchHandler,
  ): Promise<void> {
    const abort = new AbortController();
    sink.onConnect?.((reason) => abort.abort(reason));
    try {
      const request = this.#buildRequest(options, abort.signal);
      const response = checkResponse(await this.#handler(request));
      await sendResponse(response, options.method === "HEAD", abort.signal, sink);
    } catch (error) {
      if (!abort.signal.aborted) this.#context.onError(error);
      return sink.onError?.(new Error(`the handler failed: ${describe(error)}`));
    }
    if (abort.signal.aborted) sink.onError?.(new Error("the visitor left"));
    else sink.onComplete?.(null);
  }

  /** The methods that `Request` does not allow (TRACE, TRACK, CONNECT) are refused by the server. */
  #buildRequest(
    { path, method, headers, body }: Dispatcher.DispatchOptions,
    signal: AbortSignal,
  ): Request {
    const fields = new Headers();
    for (const [name, value] of headerPairs(headers as string[])) fields.append(name, value);
    const url = buildUrl(path, fields.get("host"), this.#context.getPublicOrigin());
    const stream = body as Readable | null;
    const mayHaveBody = method !== "GET" && method !== "HEAD";
    // `Request` allows these methods no body; what the visitor sends with them is read and dropped.
    if (!mayHaveBody) stream?.resume();
    return new Request(url, {
      method,
      headers: fields,
      signal,
      // Pulled chunk by chunk, so that the visitor sends no faster than the function reads.
      ...(stream && mayHaveBody ? { body: ReadableStream.from(stream), duplex: "half" } : {}),
    } as unknown as RequestInit);
  }
}

/**
 * The request's public URL. The path is joined as text, because resolving `//elsewhere/x` as a URL would replace the host.
 * @param target as the visitor sent it: a path, or `*` (RFC 9112 §3.2).
 */
function buildUrl(target: string, host: string | null, publicOrigin: string): string {
  const { protocol } = new URL(publicOrigin);
  const named = `${protocol}//${host ?? ""}`;
  const origin = URL.canParse(named) && new URL(named).pathname === "/" ? named : publicOrigin;
  return origin + (target.startsWith("/") ? target : "/");
}

/** Accepts the `Response` of any implementation of the standard. @throws TypeError for anything else. */
function checkResponse(value: unknown): Response {
  const response = value as Response | null | undefined;
  const isResponse = typeof response?.status === "number" && "body" in response;
  if (!isResponse || response.status < 200 || response.status > 599)
    throw new TypeError("it must return a Response with a status from 200 to 599");
  return response;
}

async function sendResponse(
  response: Response,
  isHead: boolean,
  signal: AbortSignal,
  sink: Dispatcher.DispatchHandler,
): Promise<void> {
  if (signal.aborted) return cancelBody(response);
  let resume = (): void => undefined;
  sink.onHeaders?.(response.status, toRawHeaders(response), () => resume(), response.statusText);
  if (isHead || !response.body) return cancelBody(response);
  const reader = response.body.getReader();
  const stop = (): void => {
    resume();
    void reader.cancel(signal.reason).catch(() => undefined);
  };
  signal.addEventListener("abort", stop, { once: true });
  for (;;) {
    const { done, value } = (await reader.read()) as { done: boolean; value: unknown };
    if (done || signal.aborted) return;
    if (!ArrayBuffer.isView(value))
      throw new TypeError("the chunks of a response's body must be Uint8Arrays");
    const chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const isTaken = new Promise<void>((resolve) => (resume = resolve));
    if (sink.onData?.(chunk) === false && !signal.aborted) await isTaken;
  }
}

/** A body that is not sent must not keep the function's resources open. */
async function cancelBody({ body }: Response): Promise<void> {
  if (body && !body.locked) await body.cancel();
}

function toRawHeaders(response: Response): Buffer[] {
  const coding = response.headers.get("content-encoding") ?? "";
  // The handler returned a response of `fetch`: its body is already decoded, so Content-Encoding and Content-Length do not apply.
  const isDecoded = response.url !== "" && DECODED_BY_FETCH.test(coding);
  const raw: Buffer[] = [];
  for (const [name, value] of response.headers) {
    if (isDecoded && (name === "content-encoding" || name === "content-length")) continue;
    raw.push(Buffer.from(name, "latin1"), Buffer.from(value, "latin1"));
  }
  return raw;
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
