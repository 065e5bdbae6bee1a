/**
 * The messages that a network's public port accepts, and from which peers. Everything else is dropped without a
 * response:
 *
 * | message                            | accepted from                                                        |
 * | ---------------------------------- | -------------------------------------------------------------------- |
 * | initiation with the server's mac1  | any address, at a limited rate for each source                       |
 * | response, cookie                   | a known flow, for an index that the server sent                      |
 * | transport                          | a known flow, or a new address with an index of the last 4 minutes   |
 *
 * A new association does not know the indices of existing sessions, so for `FLOW_LENIENCY_MS` it accepts transport
 * messages from new addresses, at a limited rate for all of them together until the server responds: WireGuard sends
 * data only to an address that has authenticated itself.
 */
import { WIREGUARD } from "../../protocol/relay/wireguard.ts";
import { getAddressGroup } from "../../shared/address-group.ts";
import type { DropReason } from "../metrics.ts";
import { DatagramBudget } from "./datagram-budget.ts";
import type { Flow } from "./flows.ts";
import { ReceiverIndices } from "./receiver-indices.ts";
import {
  getMac1Key,
  getMessageType,
  getReceiverIndex,
  getSenderIndex,
  verifyMac1,
} from "./wireguard.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";

/** First handshake messages from one address (IPv6: /64) at a port: WireGuard itself sends one each 5 s. */
const INITIATIONS_PER_SECOND = 10;
export const INITIATIONS_BURST = 20;
const INITIATION_SOURCES_MAX = 4_096;
/**
 * First handshake messages at a port that are read beyond those of their address, because junk can have the address of any
 * device: a mac1 takes about 10 µs to verify, so this is 2 % of a core.
 */
const UNVERIFIED_INITIATIONS_PER_SECOND = 2_000;
export const UNVERIFIED_INITIATIONS_BURST = 2_000;
const NEW_FLOWS_PER_SECOND = 20;
export const NEW_FLOWS_BURST = 200;
/** Data of peers that may have no session, for all peers of a port together. */
const UNPROVEN_DATA_PER_SECOND = 500;
export const UNPROVEN_DATA_BURST = 1_000;
/** How long a receiver index of the server lets a peer move to another address. */
export const RECEIVER_INDEX_MAX_AGE_MS = 240_000;
export const RECEIVER_INDICES_PER_PORT_MAX = 65_536;

/** For this long after a restart, peers that the relay does not know yet may send data (WireGuard type 4). */
export const FLOW_LENIENCY_MS = 180_000;

/**
 * `confirmed`: passed, with an index that the server sent. `unproven`: passed from a new address that may have a session from
 * before the association began.
 */
type FilterVerdict = "pass" | "confirmed" | "unproven" | { drop: DropReason };

const PASS = "pass";
const CONFIRMED = "confirmed";
const UNPROVEN = "unproven";
const NOT_WIREGUARD = { drop: "not_wireguard" } as const;
const WRONG_MAC1 = { drop: "wrong_mac1" } as const;
const INITIATION_RATE = { drop: "initiation_rate" } as const;
const NEW_FLOW_RATE = { drop: "new_flow_rate" } as const;
const UNKNOWN_PEER = { drop: "unknown_peer" } as const;
const UNPROVEN_RATE = { drop: "unproven_rate" } as const;
const UNKNOWN_INDEX = { drop: "unknown_index" } as const;

/** The budgets of one address group. */
interface InitiationSource {
  /** Initiations whose mac1 is verified in any case. Anyone can use them up with junk from a forged address. */
  unverified: DatagramBudget;
  /** Initiations with the server's mac1. */
  verified: DatagramBudget;
}

export class WireGuardFilter {
  readonly #startedAtMs: number;
  readonly #indices = new ReceiverIndices(RECEIVER_INDICES_PER_PORT_MAX, RECEIVER_INDEX_MAX_AGE_MS);
  readonly #newFlows: DatagramBudget;
  /** For data of flows that have not been shown to belong to a session: anyone can send it. */
  readonly #unproven: DatagramBudget;
  /** For initiations of sources that have used up their own, so that junk does not keep out the device whose address it has. */
  readonly #unverified: DatagramBudget;
  /** By address group; the oldest is dropped first. */
  readonly #sources = new BoundedMap<string, InitiationSource>(INITIATION_SOURCES_MAX);
  #mac1Key: Uint8Array;

  /** @param serverPublicKey 32 bytes. */
  constructor(serverPublicKey: Uint8Array, nowMs: number) {
    this.#mac1Key = getMac1Key(serverPublicKey);
    this.#startedAtMs = nowMs;
    this.#newFlows = new DatagramBudget(NEW_FLOWS_PER_SECOND, NEW_FLOWS_BURST, nowMs);
    this.#unproven = new DatagramBudget(UNPROVEN_DATA_PER_SECOND, UNPROVEN_DATA_BURST, nowMs);
    this.#unverified = new DatagramBudget(
      UNVERIFIED_INITIATIONS_PER_SECOND,
      UNVERIFIED_INITIATIONS_BURST,
      nowMs,
    );
  }

  setServerPublicKey(serverPublicKey: Uint8Array): void {
    this.#mac1Key = getMac1Key(serverPublicKey);
  }

  /** @param flow the flow of the message's source address and port. @param address without port. */
  checkFromPeer(
    message: Uint8Array,
    flow: Pick<Flow, "state"> | undefined,
    address: string,
    nowMs: number,
  ): FilterVerdict {
    const type = getMessageType(message);
    switch (type) {
      case WIREGUARD.transport: {
        if (flow?.state === "confirmed") return PASS;
        const isKnownIndex = this.#indices.has(getReceiverIndex(message, type), nowMs);
        if (flow && isKnownIndex) return CONFIRMED;
        if (flow?.state === "proven") return PASS;
        if (flow) return this.#unproven.take(1, nowMs) ? PASS : UNPROVEN_RATE;
        if (!isKnownIndex && nowMs - this.#startedAtMs > FLOW_LENIENCY_MS) return UNKNOWN_INDEX;
        if (!this.#newFlows.take(1, nowMs)) return NEW_FLOW_RATE;
        return isKnownIndex ? CONFIRMED : UNPROVEN;
      }
      case WIREGUARD.initiation: {
        const source = this.#getSource(address, nowMs);
        const isRead = source.unverified.take(1, nowMs) || this.#unverified.take(1, nowMs);
        if (!isRead) return INITIATION_RATE;
        if (!verifyMac1(message, this.#mac1Key)) return WRONG_MAC1;
        if (!source.verified.take(1, nowMs)) return INITIATION_RATE;
        return flow || this.#newFlows.take(1, nowMs) ? PASS : NEW_FLOW_RATE;
      }
      case WIREGUARD.response:
      case WIREGUARD.cookie:
        if (!flow) return UNKNOWN_PEER;
        return this.#indices.has(getReceiverIndex(message, type), nowMs)
          ? CONFIRMED
          : UNKNOWN_INDEX;
      default:
        return NOT_WIREGUARD;
    }
  }

  /** Records the indices of a message that the server sends. @returns its type; 0 when it is not WireGuard. */
  recordFromServer(message: Uint8Array, nowMs: number): number {
    const type = getMessageType(message);
    if (type === WIREGUARD.initiation || type === WIREGUARD.response) {
      this.#indices.add(getSenderIndex(message), nowMs);
    }
    return type;
  }

  #getSource(address: string, nowMs: number): InitiationSource {
    const group = getAddressGroup(address);
    let source = this.#sources.get(group);
    if (!source) {
      source = {
        unverified: new DatagramBudget(INITIATIONS_PER_SECOND, INITIATIONS_BURST, nowMs),
        verified: new DatagramBudget(INITIATIONS_PER_SECOND, INITIATIONS_BURST, nowMs),
      };
      this.#sources.set(group, source);
    }
    return source;
  }
}
