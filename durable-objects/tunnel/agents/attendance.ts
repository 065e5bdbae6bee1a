/**
 * Tells the organization who serves this tunnel. What was told is in storage: news that did not arrive is
 * told again by the alarm, and an agent that went down with the whole process is missed by whoever asks.
 */
import type { ObjectBindings } from "../../bindings.ts";
import type { Attendance, PresentAgent, Watch } from "../../rpc.ts";
import type { AgentAttachment } from "./admission.ts";

const KEY = "attendance";

interface Kept extends Attendance {
  orgId: string;
  isTold: boolean;
}

export interface Attended {
  /** May find that the agent has to go. */
  present(): AgentAttachment | undefined;
  /** What the organization says in return: whether somebody watches. */
  answered(watch: Watch): void;
}

export class AttendanceBook {
  readonly #kv: SyncKvStorage;
  readonly #organizations: ObjectBindings["ORGANIZATION"];
  readonly #tunnel: Attended;
  #telling: Promise<void> | undefined;

  constructor(kv: SyncKvStorage, organizations: ObjectBindings["ORGANIZATION"], tunnel: Attended) {
    this.#kv = kv;
    this.#organizations = organizations;
    this.#tunnel = tunnel;
  }

  /** Whose tunnel this is; undefined while no agent has ever come. */
  get home() {
    const kept = this.#kv.get<Kept>(KEY);
    if (!kept) return undefined;
    return { tunnelId: kept.tunnelId, organization: this.#organizations.getByName(kept.orgId) };
  }

  /** For the organization, which asks: from its answer on, this is told. @returns null when nobody ever served. */
  asked(): Attendance | null {
    const kept = this.#note();
    if (!kept) return null;
    this.#kv.put<Kept>(KEY, { ...kept, isTold: true });
    return attendanceOf(kept);
  }

  /** Resolves when the organization knows what is true. */
  tell(): Promise<void> {
    this.#note();
    this.#telling ??= this.#tellNewest().finally(() => (this.#telling = undefined));
    return this.#telling;
  }

  async #tellNewest(): Promise<void> {
    for (;;) {
      const kept = this.#kv.get<Kept>(KEY);
      if (!kept || kept.isTold) return;
      this.#tunnel.answered(
        await this.#organizations.getByName(kept.orgId).attend(attendanceOf(kept)),
      );
      const { sequence } = this.#kv.get<Kept>(KEY)!;
      if (sequence === kept.sequence) this.#kv.put<Kept>(KEY, { ...kept, isTold: true });
    }
  }

  /** Keeps who serves, under the next number when it is somebody else than before. */
  #note(): Kept | undefined {
    const kept = this.#kv.get<Kept>(KEY);
    const attachment = this.#tunnel.present();
    if (kept?.agent?.agentId === attachment?.agentId) return kept;
    const known = attachment ?? kept;
    if (!known) return undefined;
    const { orgId, tunnelId } = known;
    const agent = attachment ? agentOf(attachment) : null;
    const noted = { orgId, tunnelId, sequence: (kept?.sequence ?? 0) + 1, agent, isTold: false };
    this.#kv.put<Kept>(KEY, noted);
    return noted;
  }
}

function agentOf({ agentId, remoteIp, connectedAtMs }: AgentAttachment): PresentAgent {
  return { agentId, remoteIp, connectedAtMs };
}

function attendanceOf({ tunnelId, sequence, agent }: Kept): Attendance {
  return { tunnelId, sequence, agent };
}
