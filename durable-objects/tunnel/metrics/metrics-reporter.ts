/**
 * Counts a tunnel's traffic, saves the counters, and reports them to the tunnel's row, outside of visitors' requests.
 * After a pause the counters are saved when the first request has been served, so that a tunnel with little traffic needs
 * no alarm for it; while there is more traffic, the alarm saves them every few seconds. The alarm also sends the reports.
 * It is set for two expiries as well: of the agent's token, because a report checks whether the agent may still serve, and
 * of the tunnel.
 */
import { diskPace } from "../../disk-pace.ts";
import type { InternalApi, TunnelReport } from "../../rpc.ts";
import type { AssociationUsage } from "../../../protocol/relay/link.ts";
import type { Alarm } from "../alarm.ts";
import { Outcomes } from "./outcomes.ts";
import { ReportPace } from "./report-pace.ts";
import { Spending } from "./spending.ts";
import { RelayedUsage } from "../tcp/relayed-usage.ts";
import { ShardUsage, type ShardReport } from "../shards/shard-usage.ts";
import { CounterStore } from "./counter-store.ts";
import { Traffic } from "./traffic.ts";
import { Usage, type UsageTotals } from "./usage.ts";

/** While a tunnel carries traffic, its counters are saved this often. A crash loses no more than this. */
const COUNTERS_SAVE_INTERVAL_MS = 5_000;
/** How much longer that is on a slow disk: together less than the ten seconds after which an idle object is evicted. */
const DISK_WAIT_MAX_MS = 4_000;
/** How soon the first change after a pause is saved: when a short exchange has ended. */
const COUNTERS_SAVE_DELAY_MS = 100;
/** Traffic that is reported with the next save: what costs a cent, so that a budget is not exceeded by much more. */
const REPORT_MAX_BYTES = 100_000_000;
const REPORT_MAX_REQUESTS = 20_000;
/** When a lost agent is reported: most agents have reconnected then, and the reports of the others are spread. */
const LOSS_REPORT_MIN_MS = 10_000;
export const LOSS_REPORT_MAX_MS = 30_000;
/** The shortest time until the row is asked whether the tunnel has expired. */
const EXPIRY_CHECK_MIN_MS = 200;

const TUNNEL_ID_KEY = "tunnel-id";

/** The fields of a report that are not counted here. */
export type ReportedState = Pick<TunnelReport, "agentConnected" | "lastSeenAtMs" | "maintenance">;

interface ReportedTunnel {
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
  readonly #pace: ReportPace;
  readonly #kv: SyncKvStorage;
  readonly #store: CounterStore;
  readonly #alarm: Alarm;
  readonly #rows: Pick<InternalApi, "reportTunnel">;
  readonly #tunnel: ReportedTunnel;
  #sequence: number;
  /** Whether a report has had this number, maybe of an earlier instance: the row ignores another one with the same number. */
  #isSequenceUsed = true;
  /** null: nothing was counted since the last report. */
  #reportAtMs: number | null;
  #isSaved = true;
  #savedAtMs = -Infinity;
  #nextSaveAtMs = -Infinity;
  /** The totals of the last report; after a restart, those that were saved. */
  #reported: UsageTotals;

  constructor(
    storage: DurableObjectStorage,
    alarm: Alarm,
    rows: Pick<InternalApi, "reportTunnel">,
    tunnel: ReportedTunnel,
  ) {
    this.#kv = storage.kv;
    this.#alarm = alarm;
    this.#rows = rows;
    this.#tunnel = tunnel;
    this.#store = new CounterStore(storage);
    const saved = this.#store.load();
    this.#sequence = saved.sequence;
    this.#reportAtMs = saved.reportAtMs;
    this.#pace = new ReportPace(saved.pace);
    this.usage = new Usage(saved.usage, () => this.#beforeCount());
    this.#reported = { ...this.usage.totals };
    this.#outcomes = new Outcomes(saved.outcomes);
    const totals = () => ({ ...this.usage.totals, requests: this.#outcomes.requests });
    this.#traffic = new Traffic(totals, saved.traffic, Date.now());
    this.#relayed = new RelayedUsage(storage.kv);
    this.#shards = new ShardUsage(storage.kv);
    const nonce = tunnel.servingToken()?.nonce ?? null;
    this.#spending = new Spending(saved.spending, this.usage.totals, nonce);
  }

  /** Sets the id that reports carry. None are sent before that. */
  setTunnelId(tunnelId: string): void {
    if (this.tunnelId !== tunnelId) this.#kv.put(TUNNEL_ID_KEY, tunnelId);
  }

  get tunnelId(): string | undefined {
    return this.#kv.get<string>(TUNNEL_ID_KEY);
  }

  /** Traffic from here on is charged to this token. null: to none. */
  setChargedToken(tokenNonce: string | null): void {
    this.#spending.setChargedToken(tokenNonce, Date.now());
  }

  /** Counts the outcome of a visitor's request or of a replay. */
  countOutcome(request: Pick<Request, "signal">, pending: Promise<Response>): Promise<Response> {
    const arrivedAtMs = Date.now();
    return pending.then((response) => {
      const now = Date.now();
      this.#traffic.advanceTo(now);
      const { requests } = this.#outcomes;
      this.#outcomes.count(request, response, now - arrivedAtMs);
      if (this.#outcomes.requests > requests) this.#scheduleSave();
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
    // The storage of a tunnel that has ended was removed, and must stay empty.
    if (this.tunnelId === undefined) return;
    const now = Date.now();
    const { connections, bytesIn, bytesOut } = this.#relayed.takeIncrease(report, now);
    if (connections === 0 && bytesIn === 0 && bytesOut === 0) return;
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

  /** The report is sent even if the object restarts before it has arrived. */
  reportNow(): void {
    const now = Date.now();
    this.#reportAtMs = now;
    this.#save(now);
    this.#alarm.scheduleBy(now, "confirmed");
  }

  /**
   * The object restarted and lost its agent, as all objects of a process do, and their reports would delay the agents that
   * reconnect. `reportNow` ends the wait.
   */
  postponeReport(): void {
    const spreadMs = LOSS_REPORT_MAX_MS - LOSS_REPORT_MIN_MS;
    this.#reportAtMs = Date.now() + LOSS_REPORT_MIN_MS + Math.random() * spreadMs;
  }

  /** Sets the alarm for the next expiry. */
  scheduleExpiryAlarm(): void {
    const expiries = [this.#tunnel.servingToken()?.endsAtMs, this.#tunnel.endsAtMs()];
    const known = expiries.filter((atMs) => atMs !== undefined);
    if (known.length === 0) return;
    const now = Date.now();
    const atMs = Math.min(...known);
    // The alarm itself retries an expiry that failed.
    if (atMs <= now && this.#alarm.hasFailed) return;
    this.#alarm.scheduleBy(Math.max(atMs, now + EXPIRY_CHECK_MIN_MS), "confirmed");
  }

  /** @returns null before any agent has connected; the first report includes what was counted until then. */
  async send(): Promise<TunnelReport | null> {
    const now = Date.now();
    const state = this.#tunnel.currentState();
    if (!this.#isSaved || this.#isSequenceUsed) this.#save(now);
    this.#reportAtMs = null;
    const report = this.#createReport(state, now);
    if (!report) return null;
    try {
      await this.#store.sync();
      await this.#rows.reportTunnel(report);
    } catch (cause) {
      this.#reportAtMs = now;
      throw cause;
    }
    this.#spending.markReported(report.spending);
    this.#traffic.markReported(report.traffic);
    this.#pace.recordReport(now);
    this.#reported = report;
    this.#save(Date.now());
    return report;
  }

  /** The alarm retries what throws here. */
  async onAlarm(): Promise<void> {
    const now = Date.now();
    // Disconnects an agent whose token has expired, and that is reported at once.
    this.#tunnel.currentState();
    const wasSaved = this.#isSaved;
    if (!wasSaved) this.#save(now);
    if (this.#reportAtMs !== null && this.#reportAtMs <= now) await this.send();
    // After a save there will probably be another one, for which the alarm is then set already.
    if (this.#reportAtMs !== null)
      this.#alarm.scheduleBy(wasSaved ? this.#reportAtMs : this.#nextSaveAtMs, "unconfirmed");
    this.scheduleExpiryAlarm();
  }

  #beforeCount(): void {
    this.#traffic.advanceTo(Date.now());
    this.#scheduleSave();
  }

  /** Called when counters have changed or are about to change in this event-loop turn. */
  #scheduleSave(): void {
    if (!this.#isSaved) return;
    this.#isSaved = false;
    const now = Date.now();
    this.#reportAtMs ??= this.#pace.nextAtMs(now);
    // The clock may have been set back.
    const isSoonAfterSave = now >= this.#savedAtMs && now < this.#nextSaveAtMs;
    const atMs = isSoonAfterSave ? this.#nextSaveAtMs : Infinity;
    this.#alarm.scheduleBy(Math.min(atMs, this.#reportAtMs), "unconfirmed");
    if (!isSoonAfterSave) void this.#saveAfterDelay();
  }

  async #saveAfterDelay(): Promise<void> {
    await scheduler.wait(COUNTERS_SAVE_DELAY_MS);
    if (!this.#isSaved) this.#save(Date.now());
  }

  /** Saves all counters together, so that buckets and totals agree after a restart. */
  #save(nowMs: number): void {
    // The storage of a tunnel that has ended was removed, and must stay empty.
    const hasTraffic = this.#traffic.getUnreported(nowMs).length > 0;
    this.#isSaved = true;
    this.#savedAtMs = nowMs;
    this.#nextSaveAtMs = nowMs + COUNTERS_SAVE_INTERVAL_MS + diskPace.takeTurn(DISK_WAIT_MAX_MS);
    if (this.tunnelId === undefined && !hasTraffic) return;
    if (this.#isMuchUnreported) {
      this.#reportAtMs = nowMs;
      this.#alarm.scheduleBy(nowMs, "unconfirmed");
    }
    this.#spending.getUnreported(nowMs);
    this.#isSequenceUsed = false;
    this.#store.save({
      usage: this.usage.totals,
      outcomes: this.#outcomes.totals(),
      traffic: this.#traffic.stored,
      spending: this.#spending.stored,
      sequence: ++this.#sequence,
      reportAtMs: this.#reportAtMs,
      pace: this.#pace.saved,
    });
  }

  get #isMuchUnreported(): boolean {
    const { requests, bytesIn, bytesOut } = this.usage.totals;
    const reported = this.#reported;
    const bytes = bytesIn + bytesOut - reported.bytesIn - reported.bytesOut;
    return requests - reported.requests >= REPORT_MAX_REQUESTS || bytes >= REPORT_MAX_BYTES;
  }

  #createReport(state: ReportedState, nowMs: number): TunnelReport | null {
    const { tunnelId } = this;
    if (tunnelId === undefined) return null;
    this.#isSequenceUsed = true;
    return {
      tunnelId,
      sequence: this.#sequence,
      ...state,
      ...this.usage.totals,
      counters: this.#outcomes.totals(),
      traffic: this.#traffic.getUnreported(nowMs),
      spending: this.#spending.getUnreported(nowMs),
    };
  }
}
