/** `underpass vpn <network> --apply`: keeps the peers of the WireGuard interface in step with the network's devices. */
import { isAddressIn } from "../../../shared/cidr.ts";
import { WireGuardKey, type Device } from "../../../protocol/schemas/networks.ts";
import type { AppliedPeers } from "./applied-peers.ts";
import { removePeer, setPeer, showAllowedIps, type AllowedIps } from "../wireguard/tools.ts";

interface PeerChanges {
  added: Device[];
  /** Public keys. */
  removed: string[];
}

interface PeerPlan {
  /** Devices that have no peer, or a peer without their address. */
  set: { device: Device; allowedIps: string[] }[];
  /** Public keys. */
  remove: string[];
}

/**
 * Computes the changes. A peer that was added by hand is not removed, and keeps its additional addresses.
 * @param applied public keys of the peers that this agent added.
 */
export function planPeers(
  devices: readonly Device[],
  current: AllowedIps,
  applied: ReadonlySet<string>,
): PeerPlan {
  const known = new Set(devices.map((device) => device.public_key));
  const set = devices.flatMap((device) => {
    const ip = `${device.assigned_ip}/32`;
    const ips = current.get(device.public_key);
    if (ips?.includes(ip)) return [];
    const isOwn = ips === undefined || applied.has(device.public_key);
    return [{ device, allowedIps: isOwn ? [ip] : [...ips, ip] }];
  });
  const remove = [...applied].filter((key) => !known.has(key));
  return { set, remove };
}

export class PeerApplier {
  readonly #interface: string;
  readonly #applied: AppliedPeers;
  #last = Promise.resolve();

  constructor(interfaceName: string, applied: AppliedPeers) {
    this.#interface = interfaceName;
    this.#applied = applied;
  }

  /**
   * Makes the interface's peers match the network's devices. Calls run one after the other.
   * @param cidr the network's: devices with other addresses are ignored.
   * @throws ToolError
   */
  apply(devices: readonly Device[], cidr: string): Promise<PeerChanges> {
    const usable = devices.filter(
      ({ public_key, assigned_ip }) =>
        WireGuardKey.safeParse(public_key).success && isAddressIn(assigned_ip, [cidr]),
    );
    const turn = this.#last.then(() => this.#apply(usable));
    this.#last = turn.then(
      () => undefined,
      () => undefined,
    );
    return turn;
  }

  async #apply(devices: readonly Device[]): Promise<PeerChanges> {
    const current = await showAllowedIps(this.#interface);
    const plan = planPeers(devices, current, await this.#applied.list());
    // Removals first: a new device may have the address of a removed one.
    const removed: string[] = [];
    for (const key of plan.remove) {
      if (current.has(key)) {
        await removePeer(this.#interface, key);
        removed.push(key);
      }
      await this.#applied.remove(key);
    }
    for (const { device, allowedIps } of plan.set) {
      // Recorded before it is added: a peer without a record would never be removed.
      if (!current.has(device.public_key)) await this.#applied.add([device.public_key]);
      await setPeer(this.#interface, device.public_key, allowedIps);
    }
    return { added: plan.set.map(({ device }) => device), removed };
  }
}
