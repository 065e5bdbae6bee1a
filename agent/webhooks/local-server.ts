/** The local server that deliveries are posted to, one at a time. */
import { Pool } from "undici";
import { isForwarded } from "../../protocol/header-names.ts";
import { ORIGIN_CONNECT_MAX_MS } from "../limits.ts";
import type { Delivery } from "../../protocol/schemas/webhooks.ts";
import { utf8ToLatin1 } from "../origin/header-bytes.ts";
import { getAttemptMaxMs, getLookup } from "../target.ts";
import type { ForwardTarget } from "./forward-target.ts";

const FORWARD_ATTEMPT_MAX_MS = 30_000;

export interface PostResult {
  /** null when there was no response. */
  status: number | null;
  durationMs: number;
  /** Why there was no response. */
  problem?: string;
  /** The delivery was not sent, because there was no trusted connection. */
  isUnsent: boolean;
}

/** The connection could not be opened. */
const CONNECT_ERRORS = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** The server's certificate is not trusted, so nothing was sent. */
const CERTIFICATE_ERRORS = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "CERT_HAS_EXPIRED",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

/** The agent sets these for its own connection. */
const CONNECTION_HEADERS = new Set(["host", "content-length"]);

export class DeliveryClient {
  readonly #target: ForwardTarget;
  readonly #pool: Pool;

  constructor(target: ForwardTarget, { insecureUpstream }: { insecureUpstream: boolean }) {
    this.#target = target;
    this.#pool = new Pool(target.server.origin, {
      connections: 1,
      pipelining: 1,
      allowH2: false,
      connect: {
        timeout: ORIGIN_CONNECT_MAX_MS,
        rejectUnauthorized: !insecureUpstream,
        lookup: getLookup(target.server) as never,
        autoSelectFamily: true,
        autoSelectFamilyAttemptTimeout: getAttemptMaxMs(target.server),
      },
    });
  }

  /** Posts a delivery with the vendor's own headers and bytes. */
  async post({ headers, body }: Delivery, signal: AbortSignal): Promise<PostResult> {
    const startedAt = performance.now();
    const durationMs = (): number => Math.round(performance.now() - startedAt);
    try {
      const response = await this.#pool.request({
        method: "POST",
        path: this.#target.path,
        headers: toHeaders(headers),
        body: Buffer.from(body, "base64"),
        signal: AbortSignal.any([signal, AbortSignal.timeout(FORWARD_ATTEMPT_MAX_MS)]),
      });
      await response.body.dump();
      return { status: response.statusCode, durationMs: durationMs(), isUnsent: false };
    } catch (error) {
      const { code, message } = describeFailure(error);
      const unseen = code === undefined ? undefined : explainUnsent(code);
      const isUnsent = unseen !== undefined;
      return { status: null, durationMs: durationMs(), problem: unseen ?? message, isUnsent };
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

function toHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => isForwarded(name) && !CONNECTION_HEADERS.has(name))
      .map(([name, value]) => [name, utf8ToLatin1(value)]),
  );
}

function explainUnsent(code: string): string | undefined {
  if (CONNECT_ERRORS.has(code)) return "nothing is listening on this address";
  return CERTIFICATE_ERRORS.has(code)
    ? `the local server's certificate is not trusted (${code}); use --insecure-upstream`
    : undefined;
}

/** A name with several addresses fails with one error for each of them. */
function describeFailure(error: unknown): { code: string | undefined; message: string } {
  if (error instanceof AggregateError && error.errors.length > 0)
    return describeFailure(error.errors[0]);
  if (!(error instanceof Error)) return { code: undefined, message: String(error) };
  if (error.name === "TimeoutError")
    return { code: undefined, message: "the local server did not answer in time" };
  return { code: (error as NodeJS.ErrnoException).code, message: error.message };
}
