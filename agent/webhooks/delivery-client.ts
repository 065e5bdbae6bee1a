/** The local server that deliveries are posted to, one at a time. */
import { Pool } from "undici";
import { isForwarded } from "../../protocol/header-names.ts";
import type { Delivery } from "../../protocol/schemas/webhooks.ts";
import { buildHttpConnector } from "../local-server/http-connector.ts";
import { utf8ToLatin1 } from "../origin/header-bytes.ts";
import { describeOriginError, isUnsentError } from "../origin/origin-error.ts";
import { correctParsers } from "../origin/response-parser.ts";
import { getWebOrigin } from "../origin/target.ts";
import type { ForwardTarget } from "./forward-target.ts";

const FORWARD_ATTEMPT_MAX_MS = 30_000;

export interface PostResult {
  /** null when there was no response. */
  status: number | null;
  durationMs: number;
  /** Why there was no response. */
  problem?: string;
  /** The delivery was not sent, because there was no connection to a server with a trusted certificate. */
  isUnsent: boolean;
}

/** The agent sets these for its own connection. */
const CONNECTION_HEADERS = new Set(["host", "content-length"]);

export class DeliveryClient {
  readonly #target: ForwardTarget;
  readonly #pool: Pool;

  constructor(target: ForwardTarget, options: { insecureUpstream: boolean }) {
    this.#target = target;
    this.#pool = new Pool(getWebOrigin(target.server), {
      connections: 1,
      pipelining: 1,
      allowH2: false,
      connect: correctParsers(buildHttpConnector(target.server, options)),
    });
  }

  /** Posts a delivery with the vendor's own headers and bytes. */
  async post({ headers, body }: Delivery, signal: AbortSignal): Promise<PostResult> {
    const startedAtMs = performance.now();
    const durationMs = (): number => Math.round(performance.now() - startedAtMs);
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
      return {
        status: null,
        durationMs: durationMs(),
        problem: describeOriginError(error as Error, this.#target.server),
        isUnsent: isUnsentError(error),
      };
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
