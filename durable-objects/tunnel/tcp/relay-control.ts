/**
 * What a TCP tunnel's relay must know: that an agent may serve no longer, and which addresses visitors may come
 * from. What could not be said is kept, and said by the next call or the alarm; the caller is told of
 * the failure, so that an outbox row stays.
 */
import type { REVOCATION_REASONS, Revocation } from "../../../protocol/relay/link.ts";
import type { ObjectBindings } from "../../bindings.ts";
import type { Admission } from "../agents/admission.ts";

type RelayPort = NonNullable<Admission["relay"]>;
type Reason = (typeof REVOCATION_REASONS)[number];

interface Pending {
  relayId: string;
  revocation: Revocation;
}

const KEY = { relay: "relay", pending: "relay-revocations" } as const;
/** More are never needed: each token and all of the tunnel has one. The oldest is bounded by its ticket's end. */
const PENDING_MAX = 16;

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

export class RelayControl {
  readonly #kv: Storage;
  readonly #relays: ObjectBindings["RELAY"];
  readonly #tunnelId: () => string | undefined;
  #port: RelayPort | undefined;
  #cidrsInTurn: Promise<void> = Promise.resolve();

  constructor(kv: Storage, relays: ObjectBindings["RELAY"], tunnelId: () => string | undefined) {
    this.#kv = kv;
    this.#relays = relays;
    this.#tunnelId = tunnelId;
    this.#port = kv.get<RelayPort>(KEY.relay);
  }

  /** Whether the tunnel is of protocol `tcp`, as far as an agent has ever come. */
  get isTcp(): boolean {
    return this.#port !== undefined;
  }

  /** Where an agent's visitors connect to. What another agent serves elsewhere ends. */
  setPort(port: RelayPort): void {
    const before = this.#port;
    if (before?.id === port.id && before.port === port.port) return;
    if (before) this.#add("connection_ended");
    this.#port = port;
    this.#kv.put<RelayPort>(KEY.relay, port);
  }

  /**
   * Ends what the relay carries for this tunnel, or for one token's agent of it, and refuses the tickets that
   * were signed until now. Throws when the relay's object could not be told.
   */
  async revoke(reason: Reason, tokenNonce?: string): Promise<void> {
    if (this.#port) this.#add(reason, tokenNonce);
    await this.flush();
  }

  /** Tells what earlier calls could not. */
  async flush(): Promise<void> {
    for (const pending of this.#pending()) {
      await this.#relays.getByName(pending.relayId).revoke(pending.revocation);
      const { relayId, revocation } = pending;
      const isTold = (other: Pending) =>
        other.relayId === relayId && isSame(other.revocation, revocation);
      this.#keep(this.#pending().filter((other) => !isTold(other)));
    }
  }

  /** @param cidrs the newest, whenever it is called: of two calls the later one must not say the earlier. */
  setAllowedCidrs(cidrs: () => string[] | null): Promise<void> {
    const said = this.#cidrsInTurn.then(async () => {
      const tunnelId = this.#tunnelId();
      if (!this.#port || tunnelId === undefined) return;
      await this.#relays.getByName(this.#port.id).setAllowedCidrs(tunnelId, cidrs());
    });
    this.#cidrsInTurn = said.catch(() => undefined);
    return said;
  }

  #add(reason: Reason, tokenNonce?: string): void {
    const tunnelId = this.#tunnelId();
    if (!this.#port || tunnelId === undefined) return;
    const revocation: Revocation = {
      type: "revoke",
      kind: "tunnel",
      id: tunnelId,
      ...(tokenNonce !== undefined && { tokenNonce }),
      reason,
      untilGeneration: Date.now(),
    };
    const pending = [...this.#pending(), { relayId: this.#port.id, revocation }];
    this.#keep(pending.slice(-PENDING_MAX));
  }

  #pending(): Pending[] {
    return this.#kv.get<Pending[]>(KEY.pending) ?? [];
  }

  #keep(pending: Pending[]): void {
    if (pending.length === 0) this.#kv.delete(KEY.pending);
    else this.#kv.put<Pending[]>(KEY.pending, pending);
  }
}

function isSame(a: Revocation, b: Revocation): boolean {
  return (
    a.untilGeneration === b.untilGeneration &&
    a.reason === b.reason &&
    a.tokenNonce === b.tokenNonce
  );
}
