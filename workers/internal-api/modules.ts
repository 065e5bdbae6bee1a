/** The functions behind the `InternalApi`, in one module so that its first call loads them together. */
export { admitAgent, recheckAdmission } from "../api/tunnels/agent-admission.ts";
export { admitClient, recheckClient } from "../api/tunnels/client-admission.ts";
export { getConfig } from "../config/config.ts";
export { getAccessTokenKeys } from "../identity/keys.ts";
export { redeemVisitorTicket } from "../identity/visitors/visitor-tickets.ts";
export { createDatabase } from "../jobs/outbox.ts";
export { findRoutes } from "../store/domains/hostnames.ts";
export { findLiveWatchers } from "../store/inspector/watching.ts";
export { countReservedPorts, markRelayDisconnected, saveRelay } from "../store/networks/relays.ts";
export { expireIfDue } from "../store/tunnels/lifecycle.ts";
export { applyReport, findTunnelOwner, withdrawAdmission } from "../store/tunnels/object-sync.ts";
export { findReceiverIds, findReceiverSettings } from "../store/webhooks/receivers.ts";
