/**
 * Tags of flows: the agent keeps them for the relay, which has no disk, and hands them back after a restart.
 * The key comes from what the relay is started with, so the next run can check what this one made.
 */
import { createHmac, hkdfSync } from "node:crypto";
import { equalBytesInConstantTime } from "../../shared/constant-time.ts";
import { RELAY_MAC_BYTES } from "../../protocol/relay/limits.ts";

const KEY_LABEL = "underpass-relay.v1 flow tags";

export interface TaggedFlow {
  /** Of the association that the tag is for. */
  association: number;
  networkId: string;
  id: number;
  address: string;
  port: number;
}

export class FlowTags {
  readonly #key: Buffer;

  constructor(relaySecret: string, relayId: string) {
    // HKDF (RFC 5869)
    this.#key = Buffer.from(hkdfSync("sha256", relaySecret, relayId, KEY_LABEL, 32));
  }

  /** In base64. */
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
