/** Resources of every kind, for tests that request every route. */
import type { Connection } from "../../../protocol/schemas/tunnels/connections.ts";
import { CaptureIdGenerator } from "../../../protocol/captures/id.ts";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import type { ReservedSubdomain } from "../../../protocol/schemas/domains/reserved-subdomains.ts";
import type { Invitation } from "../../../protocol/schemas/organizations/organizations.ts";
import type { Project } from "../../../protocol/schemas/organizations/projects.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { createReceiver } from "../fakes/vendor.ts";
import { mintToken, newEmail, waitUntil, type Person, type TestApi } from "./api.ts";
import { createNetwork, enroll, newKey } from "./private-networks.ts";
import { formatRoute, type Route } from "./routes.ts";

export const newDomain = () => `${crypto.randomUUID()}.example`;

/** Valid bodies for the routes that validate the body before they look up the resource in the path. */
export const BODIES: Record<string, unknown> = {
  "PUT /tunnels/{id}/auth": { username: "eve", password: "open sesame" },
  "PUT /tunnels/{id}/edge-auth": { allowed_domains: [], allowed_emails: [] },
  "PUT /tunnels/{id}/inspector": {},
  "PUT /tunnels/{id}/ip-allowlist": { cidrs: ["192.0.2.0/24"] },
  "PUT /tunnels/{id}/policy": { actions: [] },
  "PUT /tunnels/{id}/shards": { shards: 1 },
  "POST /tunnels/{id}/policy/dry-run": { actions: [] },
  "POST /tunnels/{id}/visitor-tokens": { subject: "taken" },
  "PUT /domains/{id}/bind": { tunnel_id: crypto.randomUUID() },
  "PUT /tokens/{nonce}/budget": { monthlyBudgetUsdCents: 0 },
  "POST /webhook-receivers/{id}/rotate": { secret: "taken", overlapHours: 0 },
  "POST /webhook-receivers/{id}/ack": { cursor: "1" },
  "PATCH /projects/{slug}": { name: "Taken" },
  "PUT /private-networks/{id}/server": { server_public_key: newKey(), server_listen_port: 1 },
  "POST /private-networks/{id}/devices": { name: "taken", public_key: newKey() },
  "POST /projects/{slug}/tokens": { name: "taken" },
  "PATCH /orgs/{id}": { name: "Taken" },
  "PATCH /orgs/{id}/members/{user_id}": { role: "viewer" },
  "POST /orgs/{id}/invitations": { email: "taken@example.com", role: "viewer" },
  "PUT /orgs/{id}/budget": { monthlyBudgetUsdCents: 0 },
};

/** @returns for a route: the parameters of its path that name the resources. */
export type ResourceFinder = (route: Route) => Record<string, string>;

export async function createResources(api: TestApi, of: Person): Promise<ResourceFinder> {
  const member = await api.colleague(of, "member");
  const { body: tunnel } = await of.post<Tunnel>("/tunnels", { localPort: 1 });
  const { body: domain } = await of.post<CustomDomain>("/domains", { domain: newDomain() });
  const { body: subdomain } = await of.post<ReservedSubdomain>("/reserved-subdomains", {
    subdomain: `reserved-${crypto.randomUUID()}`,
  });
  const receiver = await createReceiver(of);
  const network = await createNetwork(of);
  const { device } = await enroll(of, network.id);
  const { nonce, wireBytes } = await mintToken(of);
  await api.connectAgent(wireBytes, { port: 1 });
  const [connection] = await waitUntil(async () => {
    const { body } = await of.get<Connection[]>("/connections");
    return body.length > 0 && body;
  });
  const { body: project } = await of.post<Project>("/projects", {
    slug: `shop-${crypto.randomUUID().slice(0, 8)}`,
    name: "Shop",
  });
  const { body: list } = await of.get<{ sessions: { id: string }[] }>("/auth/sessions");
  const { body: invitation } = await of.post<Invitation>(`/orgs/${of.orgId}/invitations`, {
    email: newEmail(),
    role: "viewer",
  });
  const values = {
    "/tunnels/": { "{id}": tunnel.id },
    "/inspector/": { "{id}": new CaptureIdGenerator(tunnel.id, 0).next(Date.now()) },
    "/connections/": { "{agent_id}": connection!.agent_id },
    "/domains/": { "{id}": domain.id },
    "/reserved-subdomains/": { "{id}": subdomain.id },
    "/webhook-receivers/": { "{id}": receiver.id },
    "/hooks/": { "{id}": receiver.id },
    "/private-networks/": { "{id}": network.id, "{device_id}": device.id },
    "/tokens/": { "{nonce}": nonce },
    "/projects/": { "{slug}": project.slug },
    "/auth/sessions/": { "{id}": list.sessions[0]!.id },
    "/orgs/": {
      "{id}": of.orgId,
      "{user_id}": member.userId,
      "{invitation_id}": invitation.id,
    },
  };
  return (route) => {
    const found = Object.entries(values).find(([prefix]) => route.path.startsWith(prefix));
    if (!found) throw new Error(`createResources has nothing for ${formatRoute(route)}`);
    return found[1];
  };
}
