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
import { createNetwork, enroll } from "./private-networks.ts";
import { formatRoute, type Route } from "./routes.ts";

export const newDomain = () => `${crypto.randomUUID()}.example`;

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
  const { body: project } = await of.post<Project>("/projects", { slug: "shop", name: "Shop" });
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
