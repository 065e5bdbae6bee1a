/** Audit actions of tunnels and their access rules. */
import type { ActionDescription } from "./action-description.ts";

export const TUNNEL_ACTIONS = {
  tunnel_created: {
    resource: "tunnel",
    predicate: "created the tunnel {it}",
    description: "The tunnel was created.",
  },
  tunnel_deleted: {
    resource: "tunnel",
    predicate: "deleted the tunnel {it}",
    description: "The tunnel was deleted.",
  },
  tunnel_expired: {
    resource: "tunnel",
    predicate: "ended the tunnel {it}, which had expired",
    description: "The tunnel has expired.",
  },
  tunnel_started: {
    resource: "tunnel",
    predicate: "started the tunnel {it}",
    description: "The tunnel was started: agents may serve it.",
  },
  tunnel_stopped: {
    resource: "tunnel",
    predicate: "stopped the tunnel {it}",
    description: "The tunnel was stopped: its agent was disconnected, and none may serve it.",
  },
  tunnel_shards_set: {
    resource: "tunnel",
    predicate: "set the number of objects of the tunnel {it}",
    description: "The number of objects that the tunnel's visitors are spread over was set.",
  },
  connection_ended: {
    resource: "connection",
    predicate: "disconnected an agent of the tunnel {tunnelId}",
    description: "An agent was disconnected; `metadata.tunnelId` is the tunnel that it served.",
  },
  tunnel_password_set: {
    resource: "tunnel",
    predicate: "set a password for the tunnel {it}",
    description: "A password is required of visitors; `metadata.username` is the name with it.",
  },
  tunnel_password_removed: {
    resource: "tunnel",
    predicate: "removed the password of the tunnel {it}",
    description: "The password was removed.",
  },
  tunnel_edge_auth_set: {
    resource: "tunnel",
    predicate: "required visitors of the tunnel {it} to sign in",
    description: "Visitors must sign in.",
  },
  tunnel_edge_auth_removed: {
    resource: "tunnel",
    predicate: "stopped requiring visitors of the tunnel {it} to sign in",
    description: "Visitors no longer have to sign in.",
  },
  tunnel_policy_set: {
    resource: "tunnel",
    predicate: "set the traffic policy of the tunnel {it}",
    description: "A traffic policy was set; `metadata.actions` is the number of its actions.",
  },
  tunnel_policy_removed: {
    resource: "tunnel",
    predicate: "removed the traffic policy of the tunnel {it}",
    description: "The traffic policy was removed.",
  },
  visitor_token_minted: {
    resource: "tunnel",
    predicate: "minted a visitor token for {subject} at the tunnel {it}",
    description: "A visitor's token was minted; `metadata` has `subject` and `expiresAt`.",
  },
  tunnel_inspector_set: {
    resource: "tunnel",
    predicate: "changed the capture settings of the tunnel {it}",
    description: "The settings of the inspector were changed.",
  },
  tunnel_ip_allowlist_set: {
    resource: "tunnel",
    predicate: "limited the visitors of the tunnel {it} to some addresses",
    description: "Visitors may come from the addresses in `metadata.cidrs` only.",
  },
  tunnel_ip_allowlist_removed: {
    resource: "tunnel",
    predicate: "admitted visitors of the tunnel {it} from every address",
    description: "Visitors may come from any address.",
  },
  tunnel_maintenance_started: {
    resource: "tunnel",
    predicate: "started the maintenance of the tunnel {it}",
    description: "The maintenance page is shown.",
  },
  tunnel_maintenance_ended: {
    resource: "tunnel",
    predicate: "ended the maintenance of the tunnel {it}",
    description: "The maintenance page is no longer shown.",
  },
  tunnel_captures_cleared: {
    resource: "tunnel",
    predicate: "deleted the captured requests of the tunnel {it}",
    description: "The captured requests were deleted.",
  },
  tunnel_request_replayed: {
    resource: "tunnel",
    predicate: "replayed a request of the tunnel {it}",
    description: "A captured request was sent again; `metadata.capture` is its id.",
  },
} as const satisfies Record<string, ActionDescription>;
