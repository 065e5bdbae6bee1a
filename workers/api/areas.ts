/** The routers of the API by subject, in the order of the document. */
import { basicAuth } from "./access/basic-auth.ts";
import { identityGate } from "./access/identity-gate.ts";
import { ipAllowlist } from "./access/ip-allowlist.ts";
import { maintenance } from "./access/maintenance.ts";
import { policies } from "./access/policies.ts";
import { visitorSignIn } from "./access/visitor-sign-in.ts";
import { visitorTokens } from "./access/visitor-tokens.ts";
import { auth } from "./accounts/auth.ts";
import { deviceAuthorizations } from "./accounts/device-authorizations.ts";
import { mfa } from "./accounts/mfa.ts";
import { mfaRemoval } from "./accounts/mfa-removal.ts";
import { reauthentication } from "./accounts/reauthentication.ts";
import { providerSignIn } from "./accounts/provider-sign-in.ts";
import { passwordResets } from "./accounts/password-resets.ts";
import { sessions } from "./accounts/sessions.ts";
import { setup } from "./accounts/setup.ts";
import { billingWebhook } from "./billing/billing-webhook.ts";
import { billing } from "./billing/billing.ts";
import { mockBilling } from "./billing/mock-billing.ts";
import { domains } from "./domains/domains.ts";
import { reservedSubdomains } from "./domains/reserved-subdomains.ts";
import { health } from "./health.ts";
import { captureSettings } from "./inspector/capture-settings.ts";
import { inspector } from "./inspector/inspector.ts";
import { inspectorWatch } from "./inspector/watch.ts";
import { metrics } from "./metrics/metrics.ts";
import { networkDevices } from "./networks/devices.ts";
import { networks } from "./networks/networks.ts";
import { relayLink } from "./networks/relay-link.ts";
import { networkServers } from "./networks/server.ts";
import { auditEvents } from "./organizations/audit-events.ts";
import { invitations } from "./organizations/invitations.ts";
import { members } from "./organizations/members.ts";
import { organizations } from "./organizations/organizations.ts";
import { projects } from "./organizations/projects.ts";
import { tokens } from "./tokens/tokens.ts";
import { agents } from "./tunnels/agents.ts";
import { clientStreams } from "./tunnels/client-streams.ts";
import { connections } from "./tunnels/connections.ts";
import { diagnostics } from "./tunnels/diagnostics.ts";
import { relayTickets } from "./tunnels/relay-tickets.ts";
import { shards } from "./tunnels/shards.ts";
import { tunnelAgents } from "./tunnels/tunnel-agents.ts";
import { tunnels } from "./tunnels/tunnels.ts";
import { incomingWebhooks } from "./webhooks/incoming-webhooks.ts";
import { receivers } from "./webhooks/receivers.ts";
import type { Area } from "./reference/document.ts";
import { createReference } from "./reference/routes.ts";

export const AREAS: readonly Area[] = [
  {
    name: "Service",
    description: "The state of the service, its public keys, and this document.",
    routers: [health, createReference(() => AREAS)],
  },
  {
    name: "Accounts",
    description: "Sign-up, login, sessions, reauthentication, passwords, and tokens for machines.",
    routers: [auth, sessions, reauthentication, passwordResets, deviceAuthorizations, setup],
  },
  {
    name: "Third-party sign-in",
    description: "Signing in with an account at a provider.",
    routers: [providerSignIn],
  },
  {
    name: "Two-factor authentication",
    description: "Codes of an authenticator app, and recovery codes.",
    routers: [mfa, mfaRemoval],
  },
  {
    name: "Tunnels",
    description: "Reserving, listing, stopping and deleting tunnels.",
    routers: [tunnels, tunnelAgents, shards],
  },
  {
    name: "Tunnel access",
    description: "Who may visit a tunnel, and what happens to their requests.",
    routers: [
      maintenance,
      basicAuth,
      identityGate,
      policies,
      visitorTokens,
      ipAllowlist,
      visitorSignIn,
    ],
  },
  {
    name: "Capability tokens",
    description: "Credentials of agents, and master keys that mint them.",
    routers: [tokens],
  },
  {
    name: "Projects",
    description: "Namespaces of tunnels.",
    routers: [projects],
  },
  {
    name: "Domains",
    description: "Custom domains and reserved subdomains.",
    routers: [domains, reservedSubdomains],
  },
  {
    name: "Private networks",
    description: "WireGuard networks whose server is behind an agent.",
    routers: [networks, networkServers, networkDevices],
  },
  {
    name: "Connections",
    description: "The agents that are connected now.",
    routers: [connections],
  },
  {
    name: "Inspector",
    description: "Captured requests: listing, exporting, watching and replaying them.",
    routers: [captureSettings, inspectorWatch, inspector],
  },
  {
    name: "Metrics",
    description: "Traffic, and its cost.",
    routers: [metrics],
  },
  {
    name: "Audit log",
    description: "Actions of people and machines, with their time and place.",
    routers: [auditEvents],
  },
  {
    name: "Billing",
    description: "Plans and subscriptions.",
    routers: [billing, billingWebhook, mockBilling],
  },
  {
    name: "Webhook receivers",
    description: "Public URLs that take vendors' webhooks for agents to poll.",
    routers: [receivers, incomingWebhooks],
  },
  {
    name: "Organizations",
    description: "Organizations, their members and invitations.",
    routers: [organizations, members, invitations],
  },
  {
    name: "Agents and relays",
    description: "What agents, clients of `underpass connect` and relays call.",
    routers: [agents, clientStreams, diagnostics, relayTickets, relayLink],
  },
];
