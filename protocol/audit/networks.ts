/** Audit actions of private networks. */
import type { ActionDescription } from "./action-description.ts";

export const NETWORK_ACTIONS = {
  network_created: {
    resource: "network",
    predicate: "created the network {it}",
    description: "The private network was created.",
  },
  network_deleted: {
    resource: "network",
    predicate: "deleted the network {it}",
    description: "The private network was deleted.",
  },
  network_server_registered: {
    resource: "network",
    predicate: "registered the server of the network {it}",
    description: "A server was registered; `metadata` has its public key and port.",
  },
  network_server_removed: {
    resource: "network",
    predicate: "removed the server of the network {it}",
    description: "The server was removed.",
  },
  network_device_enrolled: {
    resource: "network_device",
    predicate: "enrolled the device {it} in the network {networkId}",
    description: "A device was enrolled in the network `metadata.networkId`.",
  },
  network_device_removed: {
    resource: "network_device",
    predicate: "removed the device {it} from the network {networkId}",
    description: "A device was removed from the network `metadata.networkId`.",
  },
} as const satisfies Record<string, ActionDescription>;
