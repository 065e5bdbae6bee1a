/**
 * Tags of flows: the relay stores nothing, so the agent stores them and sends them back after a restart of the relay.
 * The key is derived from the relay's settings, so that the next run can verify the tags of this one. Only a flow whose peer
 * is confirmed gets a tag: a valid one restores the flow as confirmed.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import { equalBytesInConstantTime } from "../../shared/constant-time.ts";
import { RELAY_MAC_BYTES } from "../../protocol/relay/limits.ts";

/** Not "flow tags" alone: earlier versions made tags of unconfirmed flows with that label, and they must not be valid here. */
const KEY_LABEL = "underpass-relay.v1 confirmed flow tags";
/** The tag of a flow whose peer is not confirmed. It is never valid. */
export const NO_TAG = "";

interface TaggedFlow {
  /** The association that the tag is for. */
  association: number;
  networkId: string;
  id: number;
  address: string;
  port: number;
}

export class FlowTags {
  /** Not its bytes: Node.js takes several times as long to make a key of them for each tag as for the tag itself. */
  readonly #key: KeyObject;

  constructor(relaySecret: string, relayId: string) {
    // HKDF (RFC 5869)
    const bytes = hkdfSync("sha256", relaySecret, relayId, KEY_LABEL, 32);
    this.#key = createSecretKey(Buffer.from(bytes));
  }

  /** @returns the tag in base64. */
  create(flow: TaggedFlow): string {
    return this.#mac(flow).toString("base64");
  }

  verify(flow: TaggedFlow, tag: string): boolean {
    return equalBytesInConstantTime(this.#mac(flow), Buffer.from(tag, "base64"));
  }

  #mac({ association, networkId, id, address, port }: TaggedFlow): Buffer {
    return createHmac("sha256", this.#key)
      .update([association, networkId, id, address, port].join("|"))
      .digest()
      .subarray(0, RELAY_MAC_BYTES);
  }
}
