/** The API's routes of tunnels, tokens and captured requests, as far as the command line manages them. */
import { z, type ZodType } from "zod";
import { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import { INSPECTOR_LIST_MAX_ROWS } from "../../protocol/schemas/inspector/inspector.ts";
import { Instant, Ok } from "../../protocol/schemas/scalars.ts";
import { BudgetResult, MintedToken, Token } from "../../protocol/schemas/tokens.ts";
import { TunnelAgent } from "../../protocol/schemas/tunnels/connections.ts";
import { Tunnel, TunnelStatusResult } from "../../protocol/schemas/tunnels/tunnels.ts";
import type { ServerEndpoint } from "../server-access.ts";
import { RetryableError, ServiceApi } from "../service-api.ts";
import { RejectionError } from "../rejection-error.ts";
import type { ApiCredential } from "./credential.ts";

/** How many rows are requested at a time. */
const PAGE_ROWS = 200;

type Method = "GET" | "POST" | "PUT" | "DELETE";

interface CallBody {
  body?: unknown;
  signal?: AbortSignal | undefined;
}

/** Servers of earlier versions do not report whether a tunnel is stopped. */
const ListedTunnel = Tunnel.extend({ stoppedAt: Instant.nullable().default(null) });

/** They do not report the agents' local servers. */
const ListedAgent = TunnelAgent.extend({ local: TunnelAgent.shape.local.default(null) });

/** Their responses to a start or a stop lack it too. */
const StopResult = TunnelStatusResult.partial({ stoppedAt: true });

/** The fields of a new token. Those that are undefined get the API's defaults. */
interface NewTokenFields {
  name: string;
  ttlHours: number | undefined;
  allowedSubdomains: string[];
  tunnelQuota: number | undefined;
  bandwidthLimitMbps: number | undefined;
}

/** The query of `GET /inspector`. */
interface CaptureQuery {
  tunnel_id?: string | undefined;
  method?: string | undefined;
  status?: string | undefined;
  path?: string | undefined;
  /** RFC 3339. */
  since?: string | undefined;
}

/** Calls throw RejectionError: a command that is run once does not retry. */
export class ManagementApi {
  readonly endpoint: ServerEndpoint;
  readonly credential: ApiCredential;
  readonly #api: ServiceApi;

  constructor(endpoint: ServerEndpoint, credential: ApiCredential) {
    this.endpoint = endpoint;
    this.credential = credential;
    this.#api = new ServiceApi(endpoint, credential.bearer, (rejection) =>
      credential.explain(rejection),
    );
  }

  // ── Tunnels ──

  /** Newest first, page by page. */
  listTunnels(signal?: AbortSignal): AsyncGenerator<Tunnel[]> {
    return this.#listPages(ListedTunnel, "/tunnels", { pageRows: PAGE_ROWS, signal });
  }

  /** The agents that serve a tunnel now. */
  listAgents(id: string): Promise<TunnelAgent[]> {
    return this.#call(z.array(ListedAgent), "GET", `/tunnels/${id}/agents`);
  }

  startTunnel(id: string): Promise<z.output<typeof StopResult>> {
    return this.#call(StopResult, "POST", `/tunnels/${id}/start`);
  }

  stopTunnel(id: string): Promise<z.output<typeof StopResult>> {
    return this.#call(StopResult, "POST", `/tunnels/${id}/stop`);
  }

  async deleteTunnel(id: string): Promise<void> {
    await this.#call(Ok, "DELETE", `/tunnels/${id}`);
  }

  // ── Tokens ──

  /** Newest first, page by page. */
  listTokens(signal?: AbortSignal): AsyncGenerator<Token[]> {
    return this.#listPages(Token, "/tokens", { pageRows: PAGE_ROWS, signal });
  }

  mintToken(fields: NewTokenFields): Promise<MintedToken> {
    return this.#call(MintedToken, "POST", "/tokens", { body: fields });
  }

  /** @param slug the only project that the token is valid for. */
  mintProjectToken(slug: string, fields: NewTokenFields): Promise<MintedToken> {
    const { name, ttlHours, allowedSubdomains } = fields;
    const body = { name, ttl_hours: ttlHours, allowed_subdomains: allowedSubdomains };
    return this.#call(MintedToken, "POST", `/projects/${encodeURIComponent(slug)}/tokens`, {
      body,
    });
  }

  rotateToken(nonce: string): Promise<MintedToken> {
    return this.#call(MintedToken, "POST", `/tokens/${nonce}/rotate`);
  }

  async revokeToken(nonce: string): Promise<void> {
    await this.#call(Ok, "DELETE", `/tokens/${nonce}`);
  }

  async setBudget(nonce: string, monthlyBudgetUsdCents: number): Promise<void> {
    const body = { monthlyBudgetUsdCents };
    await this.#call(BudgetResult, "PUT", `/tokens/${nonce}/budget`, { body });
  }

  // ── Captured requests ──

  /** Newest first, page by page. */
  listCaptures(
    query: CaptureQuery,
    signal?: AbortSignal,
    pageRows = INSPECTOR_LIST_MAX_ROWS,
  ): AsyncGenerator<CaptureSummary[]> {
    return this.#listPages(CaptureSummary, "/inspector", { pageRows, query, signal });
  }

  async *#listPages<Row extends { id: string }>(
    schema: ZodType<Row>,
    path: string,
    {
      pageRows,
      query = {},
      signal,
    }: { pageRows: number; query?: CaptureQuery; signal?: AbortSignal | undefined },
  ): AsyncGenerator<Row[]> {
    const parameters = new URLSearchParams({ limit: String(pageRows) });
    for (const [name, value] of Object.entries(query)) {
      if (typeof value === "string") parameters.set(name, value);
    }
    for (;;) {
      const address = `${path}?${parameters.toString()}`;
      const rows = await this.#call(z.array(schema), "GET", address, { signal });
      yield rows;
      const last = rows.at(-1);
      if (last === undefined || rows.length < pageRows) return;
      parameters.set("after", last.id);
    }
  }

  async #call<Schema extends ZodType>(
    schema: Schema,
    method: Method,
    path: string,
    { body, signal = new AbortController().signal }: CallBody = {},
  ): Promise<z.output<Schema>> {
    try {
      return await this.#api.call(schema, method, path, { signal, body });
    } catch (error) {
      if (!(error instanceof RetryableError)) throw error;
      const { origin } = this.endpoint.server;
      const { message: reason, cause } = error;
      // The message about a failed connection says what to do.
      const message =
        cause === undefined
          ? `${origin} did not answer (${reason}); try again, or choose another server with --server`
          : `${origin} can't be reached: ${reason}`;
      throw new RejectionError("unavailable", message);
    }
  }
}
