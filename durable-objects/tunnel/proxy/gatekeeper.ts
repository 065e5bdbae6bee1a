/**
 * What stands before a tunnel, in its object: the newest settings of its owner, maintenance, and how many
 * requests came this minute. All of it is in storage, so that a tunnel that slept lets nobody through.
 */
import { RATE_WINDOW_MS } from "../../../protocol/limits.ts";
import type { RateLimit } from "../../../protocol/schemas/access/policies.ts";
import { judge, visitorOf, type Checks } from "../../../access/judge.ts";
import { RateWindow, type SavedPart } from "../../../access/rate-window.ts";
import { isSealed, readVerdict, retryAfter, type Refusal } from "../../../access/refusal.ts";
import {
  gatesOf,
  headersOf,
  isSlow,
  newSeal,
  rateLimitOf,
  TunnelSettings,
  writeGates,
  type Gates,
  type SettingsInput,
} from "../../../access/settings.ts";
import { rewriteHead, type RequestHead } from "./heads.ts";

const MAINTENANCE_RETRY_MS = 30_000;
/** How long after a request its count may be in memory only. A restart forgets no more than this. */
const RATE_SAVE_DELAY_MS = 200;

const KEY = {
  settings: "settings",
  maintenance: "maintenance",
  rate: "rate:",
  spentTicket: "spent-ticket:",
} as const;

interface KeptSettings {
  settings: SettingsInput;
  seal: string;
}

export interface Maintenance {
  version: number;
  isOn: boolean;
  message: string | null;
}

/** What the settings come to. Replaced as a whole, so that a request meets one version of them. */
interface Rules {
  isBeyondPlan: boolean;
  allowedCidrs: string[] | null;
  gates: Gates | null;
  rateLimit: RateLimit | null;
  headers: ReadonlyMap<string, string>;
}

const NO_RULES: Rules = {
  isBeyondPlan: false,
  allowedCidrs: null,
  gates: null,
  rateLimit: null,
  headers: new Map(),
};
const AUTHORIZATION: ReadonlySet<string> = new Set(["authorization"]);
const NOTHING: ReadonlySet<string> = new Set();

export class Gatekeeper {
  readonly #storage: DurableObjectStorage;
  readonly #checks: Checks;
  #rules: Rules;
  #maintenance: Maintenance | undefined;
  #window: RateWindow | undefined;
  #saveTimer: ReturnType<typeof setTimeout> | undefined;
  #isOpen = true;

  constructor(storage: DurableObjectStorage, checks: Checks) {
    this.#storage = storage;
    this.#checks = checks;
    this.#maintenance = storage.kv.get<Maintenance>(KEY.maintenance);
    this.#rules = rulesOf(storage.kv.get<KeptSettings>(KEY.settings));
    this.#noteOpenness();
  }

  // ── What the owner says ──

  /** @throws when the settings are none: what can't be judged must not pass for no settings. */
  publish(settings: { version: number }): void {
    const known = this.#storage.kv.get<KeptSettings>(KEY.settings);
    if (known && known.settings.version >= settings.version) return;
    const kept = { settings: TunnelSettings.parse(settings), seal: newSeal() };
    this.#storage.kv.put<KeptSettings>(KEY.settings, kept);
    this.#rules = rulesOf(kept);
    if (this.#rules.rateLimit === null) this.#forgetWindow();
    this.#noteOpenness();
  }

  /** Blocks that visitors may come from. null: from anywhere. */
  get allowedCidrs(): string[] | null {
    return this.#rules.allowedCidrs;
  }

  get isInMaintenance(): boolean {
    return this.#maintenance?.isOn ?? false;
  }

  setMaintenance(maintenance: Maintenance): void {
    if (this.#maintenance && this.#maintenance.version >= maintenance.version) return;
    this.#keepMaintenance(maintenance);
  }

  /** The last agent went: whoever set it to work on what is behind it is done, or starts over. */
  endMaintenance(): void {
    if (this.#maintenance?.isOn) this.#keepMaintenance({ ...this.#maintenance, isOn: false });
  }

  /** The tunnel is gone, and so is what stood before it: who comes is told that, not to sign in. */
  remove(): void {
    this.#storage.kv.delete(KEY.settings);
    this.#storage.kv.delete(KEY.maintenance);
    this.#rules = NO_RULES;
    this.#maintenance = undefined;
    this.#forgetWindow();
    this.#noteOpenness();
  }

  // ── A visitor's request ──

  /** Nothing stands before the tunnel. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Changes the head of a request that may pass to what the agent gets. @returns null when it may. */
  async refusalOf(request: Request, head: RequestHead, address: string): Promise<Refusal | null> {
    if (this.#maintenance?.isOn) return maintenanceRefusal(this.#maintenance);
    const { isBeyondPlan, gates, rateLimit, headers } = this.#rules;
    // A gate that is not paid for must not stand open, nor go on working.
    if (isBeyondPlan) return { code: "upgrade_required" };
    if (gates !== null) {
      const told = readVerdict(head.judged, gates);
      const refusal =
        told === undefined ? await judge(gates, visitorOf(request, address), this.#checks) : told;
      if (refusal) return refusal;
    }
    if (rateLimit !== null) {
      const waitMs = this.#count(rateLimit, address);
      if (waitMs > 0) return rateRefusal(rateLimit, waitMs);
    }
    // The password was for the gate. The local server has its own, or none.
    rewriteHead(head, gates?.basicAuth ? AUTHORIZATION : NOTHING, headers);
    return null;
  }

  /** A ticket of a visitor who comes back from the provider. @returns whether it is the first time. */
  spendTicket(id: string, endsAtMs: number): boolean {
    const { kv } = this.#storage;
    // What has ended is not asked for any more.
    for (const [key, endedAtMs] of [...kv.list<number>({ prefix: KEY.spentTicket })]) {
      if (endedAtMs < Date.now()) kv.delete(key);
    }
    const key = KEY.spentTicket + id;
    if (kv.get(key) !== undefined) return false;
    kv.put<number>(key, endsAtMs);
    return true;
  }

  /** For the edge, when it judged by other gates than these, or by none. */
  newsFor({ judged }: RequestHead): string | null {
    const { gates } = this.#rules;
    if (gates === null || !isSlow(gates)) return judged === null ? null : writeGates(null);
    return isSealed(judged, gates) ? null : writeGates(gates);
  }

  // ── Inside ──

  #noteOpenness(): void {
    const { isBeyondPlan, gates, rateLimit, headers } = this.#rules;
    const hasRules = isBeyondPlan || gates !== null || rateLimit !== null || headers.size > 0;
    this.#isOpen = !hasRules && !this.isInMaintenance;
  }

  #keepMaintenance(maintenance: Maintenance): void {
    this.#maintenance = maintenance;
    this.#storage.kv.put<Maintenance>(KEY.maintenance, maintenance);
    this.#noteOpenness();
  }

  #count({ requests_per_minute: perMinute, per_client_ip: isEach }: RateLimit, address: string) {
    this.#window ??= new RateWindow(this.#savedParts());
    const waitMs = this.#window.take(isEach ? address : null, perMinute, Date.now());
    if (waitMs === 0) this.#saveTimer ??= setTimeout(() => this.#saveWindow(), RATE_SAVE_DELAY_MS);
    return waitMs;
  }

  *#savedParts(): Iterable<SavedPart> {
    for (const [, part] of this.#storage.kv.list<SavedPart>({ prefix: KEY.rate })) yield part;
  }

  /** Unconfirmed: an answer must not wait until a count is on disk. */
  #saveWindow(): void {
    this.#saveTimer = undefined;
    const entries: Record<string, SavedPart> = {};
    for (const [number, part] of this.#window?.takeChanges() ?? []) {
      entries[`${KEY.rate}${number}`] = part;
    }
    void this.#storage.put(entries, { allowUnconfirmed: true });
  }

  #forgetWindow(): void {
    this.#window = undefined;
    const saved = [...this.#storage.kv.list({ prefix: KEY.rate })];
    for (const [key] of saved) this.#storage.kv.delete(key);
  }
}

function rulesOf(kept: KeptSettings | undefined): Rules {
  if (!kept) return NO_RULES;
  const { settings, seal } = kept;
  return {
    isBeyondPlan: settings.isBeyondPlan ?? false,
    allowedCidrs: settings.allowedCidrs ?? null,
    gates: gatesOf(settings, seal),
    rateLimit: rateLimitOf(settings),
    headers: headersOf(settings),
  };
}

function maintenanceRefusal({ message }: Maintenance): Refusal {
  const refusal = retryAfter("maintenance", MAINTENANCE_RETRY_MS);
  return message === null ? refusal : { ...refusal, message };
}

/** The header lines of draft-ietf-httpapi-ratelimit-headers-06, which clients know. */
function rateRefusal({ requests_per_minute: perMinute }: RateLimit, waitMs: number): Refusal {
  const { code, headers } = retryAfter("rate_limited", waitMs);
  const reset = headers["retry-after"];
  return {
    code,
    headers: {
      ...headers,
      "ratelimit-limit": String(perMinute),
      "ratelimit-remaining": "0",
      "ratelimit-reset": reset,
      "ratelimit-policy": `${perMinute};w=${RATE_WINDOW_MS / 1000}`,
    },
  };
}
