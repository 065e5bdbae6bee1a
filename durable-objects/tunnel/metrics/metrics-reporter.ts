/**
 * Counts a tunnel's traffic and reports it to the tunnel's row. The object's alarm saves and sends reports, so
 * that counting adds no latency to a visitor's request. The alarm is also set for the expiry of the agent's token,
 * because a report checks whether the agent may still serve, and for the expiry of the tunnel.
 */
import type { InternalApi, TunnelReport } from "../../rpc.ts";
import type { AssociationUsage } from "../../../protocol/relay/link.ts";
import type { Alarm } from "../alarm.ts";
import { Outcomes, type Counters } from "./outcomes.ts";
import { Spending } from "./spending.ts";
import { RelayedUsage } from "../tcp/relayed-usage.ts";
import { ShardUsage, type ShardReport } from "../shards/shard-usage.ts";
import { Traffic, type StoredBucket } from "./traffic.ts";
import { Usage, type UsageTotals } from "./usage.ts";

/** While a tunnel carries traffic, its counters reach its row within this time. */
const USAGE_REPORT_INTERVAL_MS = 5_000;
/** How soon a tunnel whose end has passed asks its row again if the row could not be read. */
const EXPIRY_RETRY_MS = 200;

const KEY = {
  usage: "usage",
  outcomes: "outcomes",
  traffic: "traffic",
  tunnelId: "tunnel-id",
  sequence: "report-sequence",
} as const;

/** The fields of a report that are not counted here. */
export type ReportedState = Pick<TunnelReport, "agentConnected" | "lastSeenAtMs" | "maintenance">;

export interface ReportSource {
  /** May disconnect an agent whose token has expired. */
  currentState(): ReportedState;
  /** The token of the agent that serves. */
  servingToken(): { nonce: string; endsAtMs: number } | undefined;
  /** When the database must be asked whether the tunnel has expired. */
  endsAtMs(): number | undefined;
}

export class MetricsReporter {
  readonly usage: Usage;
  readonly #outcomes: Outcomes;
  readonly #traffic: Traffic;
  readonly #spending: Spending;
  readonly #relayed: RelayedUsage;
  readonly #shards: ShardUsage;
  readonly #kv: SyncKvStorage;
  readonly #alarm: Alarm;
  readonly #rows: Pick<InternalApi, "reportTunnel">;
  readonly #deps: ReportSource;
  #isScheduled = false;

  constructor(
    kv: SyncKvStorage,
    alarm: Alarm,
    rows: Pick<InternalApi, "reportTunnel">,
    tunnel: ReportSource,
  ) {
    this.#kv = kv;
    this.#alarm = alarm;
    this.#rows = rows;
    this.#deps = tunnel;
    this.usage = new Usage(kv.get<UsageTotals>(KEY.usage), () => this.#beforeCount());
    this.#outcomes = new Outcomes(kv.get<Counters>(KEY.outcomes));
    const totals = () => ({ ...this.usage.totals, requests: this.#outcomes.requests });
    this.#traffic = new Traffic(totals, kv.get<StoredBucket[]>(KEY.traffic), Date.now());
    this.#relayed = new RelayedUsage(kv);
    this.#shards = new ShardUsage(kv);
    const nonce = tunnel.servingToken()?.nonce ?? null;
    this.#spending = new Spending(kv, this.usage.totals, nonce);
  }

  /** Sets the id that reports carry. None are sent before that. */
  setTunnelId(tunnelId: string): void {
    this.#kv.put(KEY.tunnelId, tunnelId);
  }

  get tunnelId(): string | undefined {
    return this.#kv.get<string>(KEY.tunnelId);
  }

  /** Traffic from here on is charged to this token. null: to none. */
  setChargedToken(tokenNonce: string | null): void {
    this.#spending.setChargedToken(tokenNonce, Date.now());
  }

  /** Counts the outcome of a visitor's request or of a replay. */
  countOutcome(request: Pick<Request, "signal">, pending: Promise<Response>): Promise<Response> {
    const arrivedAtMs = Date.now();
    return pending.then((response) => {
      this.#beforeCount();
      this.#outcomes.count(request, response, Date.now() - arrivedAtMs);
      return response;
    });
  }

  /** Counts one connection of a client to a TCP tunnel. */
  countConnection(): void {
    this.usage.countAdmittedRequest();
    this.#outcomes.countConnections(1);
  }

  /** Usage that a relay reports, in totals of one association. Counted and saved in one event-loop turn. */
  addRelayedUsage(report: AssociationUsage): void {
    const { connections, bytesIn, bytesOut } = this.#relayed.takeIncrease(report);
    if (connections === 0 && bytesIn === 0 && bytesOut === 0) return;
    const now = Date.now();
    const count = () => {
      this.usage.countAdmittedRequest(connections);
      this.usage.countIn(bytesIn);
      this.usage.countOut(bytesOut);
      this.#outcomes.countConnections(connections);
    };
    this.#spending.chargeTo(report.tokenNonce, count, now);
    this.#save(now);
  }

  /** Usage that another object of the tunnel reports, in its totals. Counted and saved in one event-loop turn. */
  addShardReport(shard: number, report: ShardReport): void {
    // The storage of a tunnel that has ended was removed, and must stay empty.
    if (this.tunnelId === undefined) return;
    const { counters, spending, ...usage } = this.#shards.takeIncrease(shard, report);
    const now = Date.now();
    const count = () => {
      this.usage.countAdmittedRequest(usage.requests);
      this.usage.countIn(usage.bytesIn);
      this.usage.countOut(usage.bytesOut);
      this.#outcomes.add(counters);
    };
    this.#spending.chargeTo(null, count, now);
    for (const charged of spending) this.#spending.add(charged);
    this.#save(now);
  }

  reportNow(): void {
    this.#isScheduled = true;
    this.#alarm.scheduleBy(Date.now(), "confirmed");
  }

  scheduleReport(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const dueAtMs = Date.now() + USAGE_REPORT_INTERVAL_MS;
    const atMs = Math.min(dueAtMs, this.#nextExpiryMs() ?? dueAtMs);
    this.#alarm.scheduleBy(atMs, "unconfirmed");
  }

  /** Sets the alarm for the next expiry, unless a report is due before it anyway. */
  scheduleExpiryAlarm(): void {
    const atMs = this.#nextExpiryMs();
    if (atMs === undefined || this.#isScheduled) return;
    // An expiry that failed is retried, but not immediately.
    this.#alarm.scheduleBy(Math.max(atMs, Date.now() + EXPIRY_RETRY_MS), "confirmed");
  }

  /** @returns null before any agent has connected; the first report includes what was counted until then. */
  async send(): Promise<TunnelReport | null> {
    const report = this.#createReport();
    if (!report) return null;
    await this.#rows.reportTunnel(report);
    this.#spending.markReported(report.spending);
    this.#traffic.markReported(report.traffic);
    return report;
  }

  /** The alarm retries what throws here. */
  async onAlarm(): Promise<void> {
    this.#isScheduled = false;
    await this.send();
    this.scheduleExpiryAlarm();
  }

  #nextExpiryMs(): number | undefined {
    const expiries = [this.#deps.servingToken()?.endsAtMs, this.#deps.endsAtMs()];
    const known = expiries.filter((atMs) => atMs !== undefined);
    return known.length === 0 ? undefined : Math.min(...known);
  }

  #beforeCount(): void {
    this.#traffic.advanceTo(Date.now());
    this.scheduleReport();
  }

  /** Saves all counters together, so that buckets and totals agree after a restart. */
  #save(nowMs: number): Pick<TunnelReport, "traffic" | "counters"> {
    const kv = this.#kv;
    const traffic = this.#traffic.getUnreported(nowMs);
    const counters = this.#outcomes.totals();
    if (traffic.length > 0) {
      kv.put(KEY.outcomes, counters);
      kv.put(KEY.traffic, this.#traffic.stored);
    } else if (this.tunnelId === undefined) return { traffic, counters };
    kv.put(KEY.usage, this.usage.totals);
    return { traffic, counters };
  }

  #createReport(): TunnelReport | null {
    const kv = this.#kv;
    const { tunnelId } = this;
    const now = Date.now();
    const state = this.#deps.currentState();
    const { traffic, counters } = this.#save(now);
    if (tunnelId === undefined) return null;
    const sequence = (kv.get<number>(KEY.sequence) ?? 0) + 1;
    kv.put(KEY.sequence, sequence);
    const spending = this.#spending.getUnreported(now);
    return { tunnelId, sequence, ...state, ...this.usage.totals, counters, traffic, spending };
  }
}
