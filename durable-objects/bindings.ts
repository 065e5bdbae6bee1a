/** What is bound to Durable Objects: a part of what is bound to the Worker (`workers/env.ts`). */
import type { AccessBindings } from "../access/checks.ts";
import type { OrganizationRpc, RelayRpc, Rows, TunnelRpc } from "./rpc.ts";

export interface ObjectBindings extends AccessBindings {
  ROWS: Rows;
  TUNNEL: DurableObjectNamespace<TunnelRpc>;
  ORGANIZATION: DurableObjectNamespace<OrganizationRpc>;
  RELAY: DurableObjectNamespace<RelayRpc>;
  HOSTED?: string;
  TRUST_PROXY?: string;
}
