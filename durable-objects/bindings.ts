/** The bindings of Durable Objects: a part of the bindings of the Worker (`workers/env.ts`). */
import type { AccessBindings } from "../access/authenticators/authenticators.ts";
import type { ClientAddressSettings } from "../shared/client-address.ts";
import type { OrganizationRpc, RelayRpc, InternalApi, TunnelRpc } from "./rpc.ts";

export interface ObjectBindings extends AccessBindings, ClientAddressSettings {
  INTERNAL_API: InternalApi;
  TUNNEL: DurableObjectNamespace<TunnelRpc>;
  ORGANIZATION: DurableObjectNamespace<OrganizationRpc>;
  RELAY: DurableObjectNamespace<RelayRpc>;
  /** Self-hosted: the front proxy, which all visitors are connected to. */
  FRONT_PROXY?: Fetcher;
  TRACE_REQUESTS?: string;
}
