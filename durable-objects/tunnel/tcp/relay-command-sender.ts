/**
 * Sends a TCP tunnel's relay what it enforces: revocations of agents, and the addresses that visitors may come
 * from. A revocation that could not be delivered is stored and retried by the next call or the alarm. The call
 * still rejects, so that the outbox message stays.
 */
import type { REVOCATION_REASONS, Revocation } from "../../../protocol/relay/link.ts";
import type { ObjectBindings } from "../../bindings.ts";
import type { AgentAdmission } from "../admission.ts";

type RelayPort = NonNullable<AgentAdmission["relay"]>;
type Reason = (typeof REVOCATION_REASONS)[number];

interface Pending {
  relayId: string;
  revocation: Revocation;
}

const KEY = { relay: "relay", pending: "relay-revocations" } as const;
/** Enough for one revocation for each token and for the whole tunnel. The oldest becomes void with its tickets. */
const PENDING_MAX = 16;

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

export class RelayCommandSender {
  readonly #kv: Storage;
  readonly #relays: ObjectBindings["RELAY"];
  readonly #getTunnelId: () => string | undefined;
  /** null: the tunnel is private. undefined: no agent of a TCP tunnel has connected. */
  #port: RelayPort | null | undefined;
  #lastCidrsCall: Promise<void> = Promise.resolve();

  constructor(kv: Storage, relays: ObjectBindings["RELAY"], getTunnelId: () => string | undefined) {
    this.#kv = kv;
    this.#relays = relays;
    this.#getTunnelId = getTunnelId;
    this.#port = kv.get<RelayPort | null>(KEY.relay);
  }

  /** Whether the tunnel is of protocol `tcp`. Known once an agent has connected. */
  get isTcp(): boolean {
    return this.#port !== undefined;
  }

  /** The port that visitors connect to; null for a private tunnel. Connections to a previous port end. */
  setPort(port: RelayPort | null): void {
    const previous = this.#port;
    if (this.isTcp && previous?.id === port?.id && previous?.port === port?.port) return;
    if (previous) this.#add("connection_ended", { port: previous.port });
    this.#port = port;
    this.#kv.put<RelayPort | null>(KEY.relay, port);
  }

  /**
   * Ends the relay's connections for this tunnel, or for the agents of one token, and invalidates the tickets
   * signed until now. Rejects when the relay's object could not be reached.
   */
  async revoke(reason: Reason, tokenNonce?: string): Promise<void> {
    if (this.#port) this.#add(reason, { tokenNonce });
    await this.flush();
  }

  /** Delivers the pending revocations. A relay that can't be reached does not delay those of other relays. */
  async flush(): Promise<void> {
    const failures = new Map<string, unknown>();
    for (const { relayId, revocation } of this.#pending()) {
      if (failures.has(relayId)) continue;
      try {
        await this.#relays.getByName(relayId).revoke(revocation);
      } catch (cause) {
        failures.set(relayId, cause);
        continue;
      }
      const isDelivered = (other: Pending) =>
        other.relayId === relayId && isSame(other.revocation, revocation);
      this.#store(this.#pending().filter((other) => !isDelivered(other)));
    }
    for (const cause of failures.values()) throw cause;
  }

  /** @param getCidrs returns the current list, so that a delayed call does not send an old one. */
  setAllowedCidrs(getCidrs: () => string[] | null): Promise<void> {
    const call = this.#lastCidrsCall.then(async () => {
      const tunnelId = this.#getTunnelId();
      if (!this.#port || tunnelId === undefined) return;
      await this.#relays.getByName(this.#port.id).setAllowedCidrs(tunnelId, getCidrs());
    });
    this.#lastCidrsCall = call.catch(() => undefined);
    return call;
  }

  /** @param scope the tickets of one token or port; empty: all tickets of the tunnel. */
  #add(reason: Reason, scope: Pick<Revocation, "tokenNonce" | "port">): void {
    const tunnelId = this.#getTunnelId();
    if (!this.#port || tunnelId === undefined) return;
    const revocation: Revocation = {
      type: "revoke",
      kind: "tunnel",
      id: tunnelId,
      ...scope,
      reason,
      untilGeneration: Date.now(),
    };
    const pending = [...this.#pending(), { relayId: this.#port.id, revocation }];
    this.#store(pending.slice(-PENDING_MAX));
  }

  #pending(): Pending[] {
    return this.#kv.get<Pending[]>(KEY.pending) ?? [];
  }

  #store(pending: Pending[]): void {
    if (pending.length === 0) this.#kv.delete(KEY.pending);
    else this.#kv.put<Pending[]>(KEY.pending, pending);
  }
}

function isSame(a: Revocation, b: Revocation): boolean {
  return (
    a.untilGeneration === b.untilGeneration &&
    a.reason === b.reason &&
    a.tokenNonce === b.tokenNonce &&
    a.port === b.port
  );
}
