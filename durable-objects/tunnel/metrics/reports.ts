/**
 * What a tunnel counts and tells its row: saved and sent by the object's alarm, so that counting costs a
 * visitor nothing. The same alarm is set for the end of the agent's token, because a report looks whether
 * the agent may still serve, and for the end of the tunnel itself.
 */
import type { Rows, TunnelReport } from "../../rpc.ts";
import type { TunnelUsage } from "../../../protocol/relay/link.ts";
import type { Alarm } from "../alarm.ts";
import { Outcomes, type Counters } from "./outcomes.ts";
import { Spending } from "./spending.ts";
import { RelayedUsage } from "../tcp/relayed-usage.ts";
import { Traffic, type StoredBucket } from "./traffic.ts";
import { Usage, type UsageTotals } from "./usage.ts";

/** A tunnel's counters reach its row within this time while it carries traffic. */
const USAGE_REPORT_INTERVAL_MS = 5_000;
/** How soon a tunnel whose time is over asks its row again, when that was not to be had. */
const EXPIRY_RETRY_MS = 200;

const KEY = {
  usage: "usage",
  outcomes: "outcomes",
  traffic: "traffic",
  tunnelId: "tunnel-id",
  orgId: "org-id",
  sequence: "report-sequence",
} as const;

/** What a report says beside the counters. */
export type ReportedState = Pick<TunnelReport, "agentConnected" | "lastSeenAtMs" | "maintenance">;

export interface ReportSource {
  /** May find that the agent has to go. */
  currentState(): ReportedState;
  /** The token by which the agent serves. */
  servingToken(): { nonce: string; endsAtMs: number } | undefined;
  /** When the rows must be asked whether it is over. */
  endsAtMs(): number | undefined;
}

export class Reports {
  readonly usage: Usage;
  readonly #outcomes: Outcomes;
  readonly #traffic: Traffic;
  readonly #spending: Spending;
  readonly #relayed: RelayedUsage;
  readonly #kv: SyncKvStorage;
  readonly #alarm: Alarm;
  readonly #rows: Pick<Rows, "reportTunnel">;
  readonly #tunnel: ReportSource;
  #isScheduled = false;

  constructor(kv: SyncKvStorage, alarm: Alarm, rows: Pick<Rows, "reportTunnel">, tunnel: ReportSource) {
    this.#kv = kv;
    this.#alarm = alarm;
    this.#rows = rows;
    this.#tunnel = tunnel;
    this.usage = new Usage(kv.get<UsageTotals>(KEY.usage), () => this.#beforeCount());
    this.#outcomes = new Outcomes(kv.get<Counters>(KEY.outcomes));
    const totals = () => ({ ...this.usage.totals, requests: this.#outcomes.requests });
    this.#traffic = new Traffic(totals, kv.get<StoredBucket[]>(KEY.traffic), Date.now());
    this.#relayed = new RelayedUsage(kv);
    const nonce = tunnel.servingToken()?.nonce ?? null;
    this.#spending = new Spending(kv, this.usage.totals, nonce);
  }

  /** Whose reports these are; none are made before it is known. */
  identify(tunnelId: string, orgId?: string): void {
    this.#kv.put(KEY.tunnelId, tunnelId);
    if (orgId !== undefined) this.#kv.put(KEY.orgId, orgId);
  }

  /** Known once an agent was here. */
  get orgId(): string | undefined {
    return this.#kv.get<string>(KEY.orgId);
  }

  get tunnelId(): string | undefined {
    return this.#kv.get<string>(KEY.tunnelId);
  }

  /** From here on traffic is this token's. null: nobody's. */
  setChargedToken(tokenNonce: string | null): void {
    this.#spending.setChargedToken(tokenNonce, Date.now());
  }

  /** Counts what becomes of a request: a visitor's, or one that is sent again. */
  countOutcome(request: Pick<Request, "signal">, answer: Promise<Response>): Promise<Response> {
    const arrivedAtMs = Date.now();
    return answer.then((response) => {
      this.#beforeCount();
      this.#outcomes.count(request, response, Date.now() - arrivedAtMs);
      return response;
    });
  }

  /** One connection of a client to a TCP tunnel. */
  countConnection(): void {
    this.usage.countRequest();
    this.#outcomes.countConnections(1);
  }

  /** What a relay carried, in totals of one of its associations. Counted and saved in one turn. */
  addRelayedUsage(report: TunnelUsage): void {
    const { connections, bytesIn, bytesOut } = this.#relayed.takeIncrease(report);
    if (connections === 0 && bytesIn === 0 && bytesOut === 0) return;
    const now = Date.now();
    const count = () => {
      this.usage.countRequest(connections);
      this.usage.countIn(bytesIn);
      this.usage.countOut(bytesOut);
      this.#outcomes.countConnections(connections);
    };
    this.#spending.chargeTo(report.tokenNonce, count, now);
    this.#save(now);
  }

  requestNow(): void {
    this.#isScheduled = true;
    this.#alarm.scheduleBy(Date.now(), "confirmed");
  }

  requestSoon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const dueAtMs = Date.now() + USAGE_REPORT_INTERVAL_MS;
    const atMs = Math.min(dueAtMs, this.#nextExpiryMs() ?? dueAtMs);
    this.#alarm.scheduleBy(atMs, "unconfirmed");
  }

  /** Has the alarm set for the next end, when nothing else is due before it anyway. */
  scheduleExpiry(): void {
    const atMs = this.#nextExpiryMs();
    if (atMs === undefined || this.#isScheduled) return;
    // What could not be ended is tried again, and not at once.
    this.#alarm.scheduleBy(Math.max(atMs, Date.now() + EXPIRY_RETRY_MS), "confirmed");
  }

  /** @returns null when nobody was ever here; what was counted then is told with the first report. */
  async send(): Promise<TunnelReport | null> {
    const report = this.#createReport();
    if (!report) return null;
    await this.#rows.reportTunnel(report);
    this.#spending.markReported(report.spending);
    this.#traffic.markReported(report.traffic);
    return report;
  }

  /** The alarm, which tries again what throws. */
  async onAlarm(): Promise<void> {
    this.#isScheduled = false;
    await this.send();
    this.scheduleExpiry();
  }

  #nextExpiryMs(): number | undefined {
    const ends = [this.#tunnel.servingToken()?.endsAtMs, this.#tunnel.endsAtMs()];
    const known = ends.filter((atMs) => atMs !== undefined);
    return known.length === 0 ? undefined : Math.min(...known);
  }

  #beforeCount(): void {
    this.#traffic.advanceTo(Date.now());
    this.requestSoon();
  }

  /** All that is counted, so that buckets and totals agree after a restart. */
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
    const presence = this.#tunnel.currentState();
    const { traffic, counters } = this.#save(now);
    if (tunnelId === undefined) return null;
    const sequence = (kv.get<number>(KEY.sequence) ?? 0) + 1;
    kv.put(KEY.sequence, sequence);
    const spending = this.#spending.getUnreported(now);
    return { tunnelId, sequence, ...presence, ...this.usage.totals, counters, traffic, spending };
  }
}
