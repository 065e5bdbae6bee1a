/**
 * The access policy of a tunnel, in its object: the owner's current settings, maintenance, and the count of this
 * minute's requests. All of it is in storage, so that the policy still applies after the object was evicted.
 */
import { readAccessRequest, type Authenticators } from "../../../access/access-request.ts";
import { authorize } from "../../../access/authorize.ts";
import { hasGatesTag, parseEdgeVerdict } from "../../../access/edge-verdict.ts";
import {
  buildGates,
  createGatesTag,
  formatGates,
  getGateNames,
  hasSlowGate,
  type Gates,
} from "../../../access/gates.ts";
import {
  compilePolicy,
  type HeadRewrite,
  type PolicyEffects,
} from "../../../access/policy-actions.ts";
import type { CurrentSettings } from "../../../access/policy-dry-run.ts";
import { RateWindow, type SavedPart } from "../../../access/rate-window.ts";
import { withRetryAfter, type Refusal } from "../../../access/refusal.ts";
import {
  fillAddedFields,
  AccessSettings,
  type AccessSettingsInput,
} from "../../../access/settings.ts";
import { RATE_WINDOW_MS } from "../../../protocol/limits.ts";
import { diskPace } from "../../disk-pace.ts";
import type { GateName, StatusUpdate } from "../../../protocol/wire/frames.ts";
import type { RateLimit } from "../../../protocol/schemas/access/policies.ts";
import { removeFromHead, rewriteHead, type RequestHead } from "./heads.ts";

const ACCESS_TOKEN_REFUSAL: Refusal = {
  code: "unauthorized",
  by: "api_token",
  headers: { "www-authenticate": 'Bearer error="invalid_token"' },
  message:
    "This request has an access token of the Underpass API. A tunnel does not receive it, because its owner could use it. End the session that it belongs to if you sent it by mistake.",
};

const MAINTENANCE_RETRY_MS = 30_000;
/**
 * A count is saved this long after its request, at the latest; on a slow disk up to 8 s later. A crash loses no more
 * than this.
 */
const RATE_SAVE_DELAY_MS = 200;

const KEY = {
  settings: "settings",
  maintenance: "maintenance",
  rate: "rate:",
  usedTicket: "spent-ticket:",
} as const;

interface StoredSettings {
  settings: AccessSettingsInput;
  /** The gates tag. */
  seal: string;
  /** When the object received them; absent when an earlier version stored them. */
  publishedAtMs?: number;
}

export type AccessStatus = Required<Pick<StatusUpdate, "gates" | "maintenance">>;

export interface Maintenance {
  version: number;
  isOn: boolean;
  message: string | null;
}

/** The compiled settings. Replaced as a whole, so that each request meets exactly one version of them. */
interface Rules {
  isBeyondPlan: boolean;
  allowedCidrs: string[] | null;
  gates: Gates | null;
  gateNames: GateName[];
  rateLimit: RateLimit | null;
  rewrite: HeadRewrite;
}

const NO_RULES: Rules = {
  isBeyondPlan: false,
  allowedCidrs: null,
  gates: null,
  gateNames: [],
  rateLimit: null,
  rewrite: { remove: new Set(), set: new Map() },
};

export class AccessPolicy {
  readonly #storage: DurableObjectStorage;
  readonly #authenticators: Authenticators;
  readonly #getTunnelId: () => string;
  readonly #getShardCount: () => number;
  #rules: Rules;
  #maintenance: Maintenance | undefined;
  #window: RateWindow | undefined;
  #saveTimer: ReturnType<typeof setTimeout> | undefined;
  #isOpen = true;

  constructor(
    storage: DurableObjectStorage,
    authenticators: Authenticators,
    tunnel: { getTunnelId: () => string; getShardCount: () => number },
  ) {
    this.#storage = storage;
    this.#getShardCount = tunnel.getShardCount;
    this.#authenticators = authenticators;
    this.#getTunnelId = tunnel.getTunnelId;
    this.#maintenance = storage.kv.get<Maintenance>(KEY.maintenance);
    const stored = storage.kv.get<StoredSettings>(KEY.settings);
    this.#rules = stored ? compileRules(fillAddedFields(stored.settings), stored.seal) : NO_RULES;
    this.#updateIsOpen();
  }

  // ── Set by the owner ──

  /** @throws when the settings are invalid: they must not be treated as no settings. */
  publish(newest: { version: number }): void {
    const stored = this.#storage.kv.get<StoredSettings>(KEY.settings);
    if (stored && stored.settings.version >= newest.version) return;
    const settings = AccessSettings.parse(newest);
    const gatesTag = createGatesTag();
    this.#storage.kv.put<StoredSettings>(KEY.settings, {
      settings,
      seal: gatesTag,
      publishedAtMs: Date.now(),
    });
    this.#rules = compileRules(settings, gatesTag);
    if (this.#rules.rateLimit === null) this.#deleteWindow();
    this.#updateIsOpen();
  }

  /** Another object after each change of the settings. */
  get rules(): object {
    return this.#rules;
  }

  /** As they were last published; undefined before that. */
  get publishedSettings(): AccessSettingsInput | undefined {
    return this.#storage.kv.get<StoredSettings>(KEY.settings)?.settings;
  }

  /** For a dry run of another policy. */
  get currentSettings(): CurrentSettings {
    const stored = this.#storage.kv.get<StoredSettings>(KEY.settings);
    const removesAuthorization = this.#rules.rewrite.remove.has("authorization");
    if (!stored) return { policy: null, sinceMs: 0, removesAuthorization };
    const { settings, publishedAtMs: sinceMs = Infinity } = stored;
    return { policy: settings.policy, sinceMs, removesAuthorization };
  }

  /** The address blocks that visitors may come from. null: any address. */
  get allowedCidrs(): string[] | null {
    return this.#rules.allowedCidrs;
  }

  /** The state of the tunnel that its agents show. */
  get agentStatus(): AccessStatus {
    return { gates: this.#rules.gateNames, maintenance: this.isInMaintenance };
  }

  get isInMaintenance(): boolean {
    return this.#maintenance?.isOn ?? false;
  }

  /** As it was last set; undefined before that. */
  get maintenance(): Maintenance | undefined {
    return this.#maintenance;
  }

  setMaintenance(maintenance: Maintenance): void {
    if (this.#maintenance && this.#maintenance.version >= maintenance.version) return;
    this.#storeMaintenance(maintenance);
  }

  /**
   * Called when the last agent has disconnected: maintenance does not outlast the agent it was set for.
   * @param version of the maintenance that ends; a newer one stays.
   */
  endMaintenance(version: number): void {
    if (!this.#maintenance?.isOn || this.#maintenance.version > version) return;
    this.#storeMaintenance({ ...this.#maintenance, isOn: false });
  }

  /** Visitors of a retired tunnel learn that it does not exist; they are not asked to sign in. */
  remove(): void {
    this.#storage.kv.delete(KEY.settings);
    this.#storage.kv.delete(KEY.maintenance);
    this.#rules = NO_RULES;
    this.#maintenance = undefined;
    this.#deleteWindow();
    this.#updateIsOpen();
  }

  // ── A visitor's request ──

  /** Whether a request is admitted without changes, which is the case for most. */
  admitsUnchanged({ edgeVerdict, hasAccessToken }: RequestHead): boolean {
    return this.#isOpen && edgeVerdict === null && !hasAccessToken;
  }

  /**
   * Admits a request, and rewrites its head for the agent, or refuses it.
   * @returns null when the request is admitted.
   */
  async admitOrRefuse(
    request: Request,
    head: RequestHead,
    address: string,
  ): Promise<Refusal | null> {
    const rules = this.#rules;
    const refusal =
      (await this.#decide(rules, request, head, address)) ?? this.#countRequest(rules, address);
    if (refusal === null) rewriteHead(head, rules.rewrite);
    // A wrong password may be the right one elsewhere: the owner does not see it among the captured requests.
    else removeFromHead(head, rules.rewrite);
    return refusal;
  }

  /** A ticket of a visitor whom the provider redirected back. @returns false when it was used before. */
  consumeTicket(id: string, expiresAtMs: number): boolean {
    const { kv } = this.#storage;
    // Expired tickets are refused before they get here, so their ids need not be stored.
    for (const [key, otherExpiresAtMs] of [...kv.list<number>({ prefix: KEY.usedTicket })]) {
      if (otherExpiresAtMs < Date.now()) kv.delete(key);
    }
    const key = KEY.usedTicket + id;
    if (kv.get(key) !== undefined) return false;
    kv.put<number>(key, expiresAtMs);
    return true;
  }

  /** @returns the gates for the edge to cache, when it authorized by others or by none. */
  getGatesUpdate({ edgeVerdict }: RequestHead): string | null {
    const { gates } = this.#rules;
    if (gates === null || !hasSlowGate(gates))
      return edgeVerdict === null ? null : formatGates(null);
    return hasGatesTag(edgeVerdict, gates) ? null : formatGates(gates);
  }

  // ── Inside: the verdict, then the count ──

  /** The verdict on a request. Changes nothing. */
  async #decide(
    { isBeyondPlan, gates }: Rules,
    request: Request,
    { edgeVerdict, hasAccessToken }: RequestHead,
    address: string,
  ): Promise<Refusal | null> {
    if (this.#maintenance?.isOn) return toMaintenanceRefusal(this.#maintenance);
    // The plan no longer includes one of the gates, but the tunnel must not become public.
    if (isBeyondPlan) return { code: "upgrade_required", by: "plan" };
    if (hasAccessToken) return ACCESS_TOKEN_REFUSAL;
    if (gates === null) return null;
    const decided = parseEdgeVerdict(edgeVerdict, gates);
    if (decided !== undefined) return decided;
    const accessRequest = readAccessRequest(request, this.#getTunnelId(), address);
    return authorize(gates, accessRequest, this.#authenticators);
  }

  /** Counts a request, unless it exceeds the rate limit. */
  #countRequest({ rateLimit }: Rules, address: string): Refusal | null {
    if (rateLimit === null) return null;
    this.#window ??= new RateWindow(this.#readSavedParts());
    const { per_client_ip: isPerAddress, requests_per_minute: perMinute } = rateLimit;
    // All requests of an address arrive at the same object; those of all visitors are divided among the tunnel's objects.
    const limit = isPerAddress ? perMinute : Math.ceil(perMinute / this.#getShardCount());
    const waitMs = this.#window.take(isPerAddress ? address : null, limit, Date.now());
    if (waitMs > 0) return toRateRefusal(rateLimit, waitMs);
    this.#saveTimer ??= this.#startSaveTimer();
    return null;
  }

  #startSaveTimer(): ReturnType<typeof setTimeout> {
    const waitMs = RATE_SAVE_DELAY_MS + diskPace.takeTurn();
    return setTimeout(() => this.#saveWindow(), waitMs);
  }

  // ── Inside: storage ──

  #updateIsOpen(): void {
    const { isBeyondPlan, gates, rateLimit, rewrite } = this.#rules;
    const hasRules =
      isBeyondPlan ||
      gates !== null ||
      rateLimit !== null ||
      rewrite.remove.size > 0 ||
      rewrite.set.size > 0;
    this.#isOpen = !hasRules && !this.isInMaintenance;
  }

  #storeMaintenance(maintenance: Maintenance): void {
    this.#maintenance = maintenance;
    this.#storage.kv.put<Maintenance>(KEY.maintenance, maintenance);
    this.#updateIsOpen();
  }

  *#readSavedParts(): Iterable<SavedPart> {
    for (const [, part] of this.#storage.kv.list<SavedPart>({ prefix: KEY.rate })) yield part;
  }

  /** Unconfirmed: a response must not wait until a count is on disk. */
  #saveWindow(): void {
    this.#saveTimer = undefined;
    const entries: Record<string, SavedPart> = {};
    for (const [number, part] of this.#window?.takeChanges() ?? []) {
      entries[`${KEY.rate}${number}`] = part;
    }
    void this.#storage.put(entries, { allowUnconfirmed: true });
  }

  #deleteWindow(): void {
    this.#window = undefined;
    const saved = [...this.#storage.kv.list({ prefix: KEY.rate })];
    for (const [key] of saved) this.#storage.kv.delete(key);
  }
}

function compileRules(settings: AccessSettings, gatesTag: string): Rules {
  const { isBeyondPlan, allowedCidrs } = settings;
  const effects = compilePolicy(settings.policy);
  const { rateLimit, rewrite } = effects;
  if (isAuthorizationConsumed(settings, effects)) rewrite.remove.add("authorization");
  const gates = buildGates(settings, gatesTag, effects);
  const gateNames = getGateNames(settings, effects);
  return { isBeyondPlan, allowedCidrs, gates, gateNames, rateLimit, rewrite };
}

/** Whether the `Authorization` header is for a gate. The local server receives it only if the owner wants that. */
function isAuthorizationConsumed(
  { basicAuth }: AccessSettings,
  { jwt }: Pick<PolicyEffects, "jwt">,
): boolean {
  return basicAuth !== null || (jwt !== null && jwt.forward_token !== true);
}

function toMaintenanceRefusal({ message }: Maintenance): Refusal {
  const refusal = {
    ...withRetryAfter("maintenance", MAINTENANCE_RETRY_MS),
    by: "maintenance",
  } as const;
  return message === null ? refusal : { ...refusal, message };
}

/** With the headers of draft-ietf-httpapi-ratelimit-headers-06, which many clients read. */
function toRateRefusal({ requests_per_minute: perMinute }: RateLimit, waitMs: number): Refusal {
  const { code, headers } = withRetryAfter("rate_limited", waitMs);
  const reset = headers["retry-after"];
  return {
    code,
    by: "rate_limit",
    headers: {
      ...headers,
      "ratelimit-limit": String(perMinute),
      "ratelimit-remaining": "0",
      "ratelimit-reset": reset,
      "ratelimit-policy": `${perMinute};w=${RATE_WINDOW_MS / 1000}`,
    },
  };
}
