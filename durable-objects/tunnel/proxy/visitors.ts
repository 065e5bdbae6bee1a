/**
 * Visitors' requests: admitted, forwarded to the connected agent or to one that reconnects in
 * time, and answered.
 */
import { getClientAddress, type AddressTrust } from "../../../shared/client-address.ts";
import {
  DRAIN_TIMEOUT_MS,
  HEARTBEAT_INTERVAL_MS,
  RECONNECT_MAX_MS,
} from "../../../protocol/limits.ts";
import { getConnectionKey } from "../../../protocol/front-proxy/connection-key.ts";
import { REQUEST_ID_HEADER, type ErrorCode } from "../../../protocol/errors.ts";
import type { ReplayChanges, ReplayOutcome } from "../../../protocol/schemas/inspector/captures.ts";
import {
  mayBeRefusal,
  toRefusalResponse,
  withRetryAfter,
  type Refusal,
} from "../../../access/refusal.ts";
import { GATES_HEADER } from "../../../access/gates.ts";
import type { RequestTrace } from "../../../shared/tracing/request-trace.ts";
import type { LastAgent } from "../agents/last-agent.ts";
import type { PublicAddress } from "../../../protocol/public-address.ts";
import type { AgentLink } from "../agents/agent-link.ts";
import type { Agents } from "../agents/agents.ts";
import type { Captures } from "../captures/captures.ts";
import type { Recording } from "../captures/recording.ts";
import { buildReplay, consumeResponse, type Replay } from "../captures/replay.ts";
import { isDiskCritical } from "../../low-disk.ts";
import type { CustomHosts } from "./custom-hosts.ts";
import type { DepartedVisitors } from "./departed-visitors.ts";
import {
  Exchange,
  type ExchangeDeps,
  type ExchangeOutcome,
  type ForwardableVisit,
} from "./exchange.ts";
import type { AccessPolicy } from "./access-policy.ts";
import { buildRequestHead, countHeadBytes, LARGE_HEAD_REFUSAL } from "./heads.ts";
import { InFlightRequests, UNCOUNTED_PLACE } from "./in-flight.ts";
import type { Lifetime } from "../lifetime.ts";
import { ParkedRequests, getGracePeriodLeftMs } from "../agents/parked-requests.ts";
import { UPLOAD_BUFFER_BYTES } from "./request-body.ts";
import type { MetricsReporter } from "../metrics/metrics-reporter.ts";
import { VisitorSockets } from "./websockets/visitor-sockets.ts";

const STOPPED_MESSAGE =
  "The owner of this tunnel has stopped it, and can start it in the dashboard, or with: underpass tunnels start NAME";

const TOO_MANY_MESSAGE = "Too many requests to this tunnel are in progress. Try again in a moment.";
const TOO_MANY_RETRY_MS = 2_000;
const RULES_CHANGED_MESSAGE =
  "The access rules of this tunnel have changed since this request arrived. Try again.";
const RULES_CHANGED_RETRY_MS = 1_000;

type AdmittedRequest = Pick<
  PendingRequest,
  "request" | "requestId" | "head" | "address" | "recording" | "rules"
>;

/** One visitor's request, until it is answered. */
interface PendingRequest extends ForwardableVisit {
  /** The visitor's. */
  address: string;
  resolve(response: Response | Promise<Response>): void;
  /** The agents that it was forwarded to. */
  tried: AgentLink[];
  /** `AccessPolicy.rules` when it was admitted. */
  rules: object;
}

interface VisitorsDeps {
  agents: Agents;
  lastAgent: LastAgent;
  lifetime: Lifetime;
  access: AccessPolicy;
  customHosts: CustomHosts;
  captures: Captures;
  reports: Pick<MetricsReporter, "usage" | "countOutcome" | "tunnelId">;
  trust: AddressTrust;
  publicAddress: PublicAddress;
  trace: RequestTrace;
  /** Self-hosted. */
  departed?: DepartedVisitors | undefined;
}

export class Visitors {
  readonly sockets: VisitorSockets;
  readonly #deps: VisitorsDeps;
  readonly #exchangeDeps: ExchangeDeps;
  readonly #parking = new ParkedRequests();
  readonly #places: InFlightRequests;
  #inFlight = 0;
  #silenceCheck: ReturnType<typeof setInterval> | undefined;

  constructor(ctx: DurableObjectState, tunnel: VisitorsDeps) {
    this.#deps = tunnel;
    this.#places = new InFlightRequests(tunnel.agents.buffered);
    this.#exchangeDeps = {
      usage: tunnel.reports.usage,
      onCloudflare: tunnel.trust.onCloudflare,
      departed: tunnel.departed,
      onDone: () => this.#onExchangeDone(),
    };
    this.sockets = new VisitorSockets(ctx, tunnel);
  }

  visit(request: Request): Promise<Response> {
    const { captures, customHosts, access, trust, publicAddress } = this.#deps;
    if (customHosts.hasMovedAway(request))
      return Promise.resolve(toRefusalResponse({ code: "tunnel_not_found" }));
    const address = getClientAddress(request, trust);
    const head = buildRequestHead(request, address, publicAddress);
    const recording = captures.startRecording({
      parts: head.parts,
      chars: head.chars,
      hasBody: request.body !== null,
      isWebSocket: head.isWebSocket,
      clientIp: address,
      replayOf: null,
    });
    // The id of the capture, so that the owner finds the request that a visitor names.
    const requestId = recording?.id ?? crypto.randomUUID();
    const visit = { request, requestId, head, address, recording, rules: access.rules };
    const responding = access.admitsUnchanged(head)
      ? this.#dispatch(visit)
      : this.#visitWithPolicy(request, visit);
    const { trace } = this.#deps;
    const startedAtMs = Date.now();
    const answered = responding.then((response) => {
      // The local server's response has the header already.
      if (mayBeRefusal(response)) response.headers.set(REQUEST_ID_HEADER, requestId);
      if (!trace.isOff) {
        const nowMs = Date.now();
        const tunnelId = this.#deps.reports.tunnelId;
        const { status } = response;
        trace.record({ requestId, status, durationMs: nowMs - startedAtMs, tunnelId }, nowMs);
      }
      return response;
    });
    // Otherwise, the recording of a request whose access could not be checked would stay open.
    answered.catch(() => recording?.fail("internal"));
    return answered;
  }

  /**
   * Sends a captured request to the connected agent. The access policy does not apply: only the owner may replay. Resolves
   * when the response has ended.
   */
  async replay(id: string, changes: ReplayChanges): Promise<ReplayOutcome> {
    const { captures, agents } = this.#deps;
    if (!captures.allowsReplay) return { refused: "replay_disabled" };
    if (isDiskCritical(Date.now())) return { refused: "low_disk" };
    const capture = captures.find(id);
    const replay = capture ? buildReplay(capture, changes) : "not_found";
    if (typeof replay === "string") return { refused: replay };
    if (!agents.isAnyServing(Date.now())) return { refused: "agent_offline" };
    const capturedAs = await this.#sendReplay(replay, id);
    return capturedAs === null ? { refused: "not_found" } : { id: capturedAs };
  }

  /**
   * Waits for an agent that disconnected recently, if one did.
   * @param address of the visitor or client that waits, until `signal` is aborted.
   * @returns whether an agent is connected.
   */
  async waitForAgent(address: string, signal?: AbortSignal): Promise<boolean> {
    const { agents, lastAgent, lifetime } = this.#deps;
    if (lifetime.isRetired || lifetime.isStopped) return false;
    const now = Date.now();
    const maxMs = getGracePeriodLeftMs(lastAgent.getGraceStart(now), now);
    await this.#parking.wait(address, maxMs, signal);
    return agents.isAnyServing(Date.now());
  }

  /** An agent has connected, or is no longer expected. */
  releaseParked(): void {
    this.#parking.release();
  }

  /** Resolves when no request is in flight, and at the latest after `DRAIN_TIMEOUT_MS`. */
  async waitUntilIdle(): Promise<void> {
    const until = Date.now() + DRAIN_TIMEOUT_MS;
    while (this.#inFlight > 0 && Date.now() < until) await scheduler.wait(20);
  }

  // ── Inside ──

  /** @returns the id of its recording, when the replay has ended. */
  async #sendReplay({ head, body }: Replay, of: string): Promise<string | null> {
    const hasBody = body.byteLength > 0;
    const recording = this.#deps.captures.startReplayRecording({
      parts: head.parts,
      chars: head.chars,
      hasBody,
      isWebSocket: false,
      clientIp: "",
      replayOf: of,
    });
    if (!recording) return null;
    const timeout = new AbortController();
    const { signal } = timeout;
    const stream = hasBody ? new Response(body).body : null;
    const request = { method: head.parts[0]!, body: stream, bodyUsed: false, signal };
    const { rules } = this.#deps.access;
    const requestId = recording.id;
    const response = this.#deps.reports.countOutcome(
      request,
      this.#dispatch({ request, requestId, head, address: "", recording, rules }),
    );
    await consumeResponse(response, timeout);
    return recording.id;
  }

  async #visitWithPolicy(request: Request, visit: AdmittedRequest): Promise<Response> {
    const { access, agents } = this.#deps;
    const { head, address, recording } = visit;
    const refusal = await access.admitOrRefuse(request, head, address);
    if (refusal) {
      recording?.refuse(refusal.code, refusal.by);
      agents.countRefusal();
    }
    const response = refusal ? toRefusalResponse(refusal) : await this.#dispatch(visit);
    const gatesUpdate = access.getGatesUpdate(head);
    // The edge removes the header by copying the response, which would lose the WebSocket of a 101.
    if (gatesUpdate !== null && response.status !== 101) {
      response.headers.set(GATES_HEADER, gatesUpdate);
    }
    return response;
  }

  #dispatch(admitted: AdmittedRequest): Promise<Response> {
    const { request, head, address, recording } = admitted;
    const bodyBytes = request.body === null ? 0 : UPLOAD_BUFFER_BYTES;
    const heldBytes = countHeadBytes(head) + bodyBytes;
    const place = head.isWebSocket ? UNCOUNTED_PLACE : this.#places.enter(address, heldBytes);
    if (!place) {
      recording?.refuse("unavailable");
      return Promise.resolve(refuseTooMany());
    }
    this.#deps.reports.usage.countAdmittedRequest();
    return new Promise((resolve) => this.#forward({ ...admitted, place, resolve, tried: [] }));
  }

  /** To a connected agent, or to one that reconnects in time. */
  #forward(visit: PendingRequest): void {
    // The visitor left during a slow check of the access rules, or while the request waited for an agent.
    if (visit.request.signal.aborted) return this.#abandon(visit);
    // An agent that brings a gate must not receive requests that were admitted without it, and that waited for an agent.
    if (visit.rules !== this.#deps.access.rules) return this.#refuseAdmitted(visit);
    const link = this.#deps.agents.choose(Date.now(), visit.tried);
    if (!link) {
      void this.#forwardParked(visit);
      return;
    }
    visit.tried.push(link);
    if (visit.head.isWebSocket) {
      const { signal, cf } = visit.request;
      const acknowledgementKey = getConnectionKey(cf);
      visit.resolve(this.sockets.open(link, { ...visit, signal, acknowledgementKey }));
      return;
    }
    this.#inFlight += 1;
    this.#startSilenceCheck();
    new Exchange(link, visit, this.#exchangeDeps, (outcome) => this.#settle(visit, outcome));
  }

  async #forwardParked(visit: PendingRequest): Promise<void> {
    const { signal } = visit.request;
    const isConnected = await this.waitForAgent(visit.address, signal);
    if (isConnected || signal.aborted) return this.#forward(visit);
    visit.place.leave();
    visit.resolve(this.#refuseOffline(visit.recording));
  }

  #settle(visit: PendingRequest, outcome: ExchangeOutcome): void {
    if (outcome instanceof Response) return visit.resolve(outcome);
    if (this.#canForwardAgain(visit, outcome)) return this.#forward(visit);
    visit.place.leave();
    // An agent that goes away, and accepts no more requests, accepts none in a moment either.
    if (outcome === "refused" && visit.tried.at(-1)?.isGoingAway) {
      return visit.resolve(this.#refuseOffline(visit.recording));
    }
    if (outcome === "refused") {
      visit.recording?.fail("unavailable");
      return visit.resolve(refuseTooMany());
    }
    const refusal = toRefusal(outcome);
    visit.recording?.fail(refusal.code);
    visit.resolve(toRefusalResponse(refusal));
  }

  /** Once, after an agent was lost; otherwise also to each further agent of a pool, while none has passed the request on. */
  #canForwardAgain(
    { request, tried }: PendingRequest,
    outcome: Exclude<ExchangeOutcome, Response>,
  ): boolean {
    if (request.bodyUsed) return false;
    if (outcome === "lost") return tried.length === 1 && Exchange.canRepeat(request);
    if (outcome === "refused" && tried.length === 1) return true;
    if (outcome !== "refused" && outcome !== "origin_unreachable") return false;
    return this.#deps.agents
      .listServing(Date.now())
      .some((link) => link.isHealthy && !tried.includes(link));
  }

  /** The visitor has left, so the answer reaches no one. */
  #abandon(visit: PendingRequest): void {
    visit.recording?.abort();
    visit.place.leave();
    visit.resolve(this.#refuseOffline(visit.recording));
  }

  #refuseAdmitted(visit: PendingRequest): void {
    visit.place.leave();
    visit.recording?.fail("unavailable");
    const refusal = withRetryAfter("unavailable", RULES_CHANGED_RETRY_MS);
    visit.resolve(toRefusalResponse({ ...refusal, message: RULES_CHANGED_MESSAGE }));
  }

  #refuseOffline(recording: Recording | null): Response {
    const { lifetime } = this.#deps;
    recording?.fail("agent_offline");
    if (lifetime.isRetired) return toRefusalResponse({ code: "tunnel_not_found" });
    if (lifetime.isStopped)
      return toRefusalResponse({ code: "agent_offline", message: STOPPED_MESSAGE });
    return toRefusalResponse(withRetryAfter("agent_offline", RECONNECT_MAX_MS));
  }

  /** While requests are in flight, checks that the agents are alive: one that falls silent is disconnected. */
  #startSilenceCheck(): void {
    this.#silenceCheck ??= setInterval(() => {
      this.#deps.agents.disconnectSilentAndExpired(Date.now());
    }, HEARTBEAT_INTERVAL_MS / 5);
  }

  /** A timer would keep the object awake, which costs as much as serving requests. */
  #onExchangeDone(): void {
    this.#inFlight -= 1;
    if (this.#inFlight > 0) return;
    clearInterval(this.#silenceCheck);
    this.#silenceCheck = undefined;
  }
}

function toRefusal(outcome: ErrorCode | "lost" | "too_large"): Refusal {
  if (outcome === "too_large") return LARGE_HEAD_REFUSAL;
  return { code: outcome === "lost" ? "agent_offline" : outcome };
}

function refuseTooMany(): Response {
  const refusal = withRetryAfter("unavailable", TOO_MANY_RETRY_MS);
  return toRefusalResponse({ ...refusal, message: TOO_MANY_MESSAGE });
}
