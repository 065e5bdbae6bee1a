/** An organization's object and its agents, for tests inside workerd. */
import { evictDurableObject } from "cloudflare:test";
import { bindings, LiveTunnel, type TestAgent } from "./live-tunnel.ts";

export class TestOrganization {
  readonly id = crypto.randomUUID();
  readonly stub = bindings.ORGANIZATION.getByName(this.id);

  /** An agent of this organization, on a tunnel of its own unless one is given. */
  async agent(tunnel = new LiveTunnel()): Promise<{ tunnel: LiveTunnel; agent: TestAgent }> {
    return { tunnel, agent: await tunnel.agent({ orgId: this.id }) };
  }

  /** The ids of the connected agents, sorted. */
  async listAgentIds(): Promise<string[]> {
    return (await this.stub.listConnections()).map(({ agentId }) => agentId).sort();
  }

  sleep(): Promise<void> {
    return evictDurableObject(this.stub, { webSockets: "hibernate" });
  }
}

export function getAgentIds(...agents: { agent: TestAgent }[]): string[] {
  return agents.map(({ agent }) => agent.welcome!.agentId).sort();
}
