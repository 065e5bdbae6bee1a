/**
 * Reports to the organization which agents serve this tunnel. The last presence is in storage: the alarm retries
 * a report that failed. An agent that was lost with the whole process is noticed when the organization asks.
 */
import type { ObjectBindings } from "../../bindings.ts";
import type { InternalApi, Presence, ServingAgent, WatchStatus } from "../../rpc.ts";
import type { AgentAttachment } from "../socket-attachments.ts";
import type { Agents } from "./agents.ts";

/** The name is part of the stored format. */
const KEY = "attendance";

interface StoredPresence extends Omit<Presence, "agents"> {
  /** Absent in what earlier versions have stored: then it is reported again. */
  agents?: ServingAgent[];
  orgId: string;
  /** Whether the organization has received it. The name is part of the stored format. */
  isTold: boolean;
}

export class PresenceReporter {
  readonly #kv: SyncKvStorage;
  readonly #organizations: ObjectBindings["ORGANIZATION"];
  readonly #agents: Pick<Agents, "listServing" | "isAnyServing">;
  readonly #database: Pick<InternalApi, "findTunnelOwner">;
  readonly #getTunnelId: () => string;
  /** The owner of a tunnel that no agent has connected to, once it was looked up. */
  #ownerId: string | null = null;
  /** Reports are sent one after the other, so that none is passed over by a report of an earlier presence. */
  #reporting: Promise<unknown> = Promise.resolve();

  constructor(
    kv: SyncKvStorage,
    env: Pick<ObjectBindings, "ORGANIZATION" | "INTERNAL_API">,
    agents: Pick<Agents, "listServing" | "isAnyServing">,
    getTunnelId: () => string,
  ) {
    this.#kv = kv;
    this.#organizations = env.ORGANIZATION;
    this.#database = env.INTERNAL_API;
    this.#agents = agents;
    this.#getTunnelId = getTunnelId;
  }

  get hasAgent(): boolean {
    return this.#agents.isAnyServing(Date.now());
  }

  /** @returns the organization that owns the tunnel; undefined when the tunnel does not exist. */
  async findOwner() {
    const stored = this.#kv.get<StoredPresence>(KEY);
    const tunnelId = stored?.tunnelId ?? this.#getTunnelId();
    if (!stored && tunnelId !== "")
      this.#ownerId ??= await this.#database.findTunnelOwner(tunnelId);
    const orgId = stored?.orgId ?? this.#ownerId;
    if (orgId === null) return undefined;
    return { tunnelId, organization: this.#organizations.getByName(orgId) };
  }

  /** For the organization, so that nothing is left to report. @returns null when no agent has ever connected. */
  getAndMarkReported(): Presence | null {
    const stored = this.#update();
    if (!stored) return null;
    this.#kv.put<StoredPresence>(KEY, { ...stored, isTold: true });
    return toPresence(stored);
  }

  /**
   * Resolves when the organization has the current presence.
   * @returns its response, which says whether the tunnel is watched; null when there was nothing to report.
   */
  report(): Promise<WatchStatus | null> {
    this.#update();
    const report = this.#reporting.then(() => this.#reportNewest());
    this.#reporting = report.catch(() => undefined);
    return report;
  }

  async #reportNewest(): Promise<WatchStatus | null> {
    const stored = this.#kv.get<StoredPresence>(KEY);
    if (!stored || stored.isTold) return null;
    const organization = this.#organizations.getByName(stored.orgId);
    const watchStatus = await organization.reportPresence(toPresence(stored));
    const { sequence } = this.#kv.get<StoredPresence>(KEY)!;
    if (sequence === stored.sequence) {
      this.#kv.put<StoredPresence>(KEY, { ...stored, isTold: true });
    }
    return watchStatus;
  }

  /** Stores which agents serve, under the next sequence number when they have changed. */
  #update(): StoredPresence | undefined {
    const stored = this.#kv.get<StoredPresence>(KEY);
    const serving = this.#agents.listServing(Date.now());
    const agents = serving.map(({ attachment }) => toServingAgent(attachment));
    if (stored?.agents && toIds(stored.agents) === toIds(agents)) return stored;
    const owned = serving[0]?.attachment ?? stored;
    if (!owned) return undefined;
    const { orgId, tunnelId } = owned;
    const sequence = (stored?.sequence ?? 0) + 1;
    const updated = { orgId, tunnelId, sequence, agents, isTold: false };
    this.#kv.put<StoredPresence>(KEY, updated);
    return updated;
  }
}

function toServingAgent({ agentId, remoteIp, connectedAtMs }: AgentAttachment): ServingAgent {
  return { agentId, remoteIp, connectedAtMs };
}

function toIds(agents: ServingAgent[]): string {
  return agents.map(({ agentId }) => agentId).join();
}

function toPresence({ tunnelId, sequence, agents = [] }: StoredPresence): Presence {
  return { tunnelId, sequence, agents };
}
