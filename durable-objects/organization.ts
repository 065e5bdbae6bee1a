/**
 * One organization, live: which of its agents are connected.
 *
 * Tunnels tell when an agent comes and goes. The list is true at the moment in which it is given: tunnels
 * that were not heard of for a while, or not since this object started, are asked first.
 */
import { DurableObject } from "cloudflare:workers";
import { ATTENDANCE_ASKED_AT_ONCE } from "../protocol/limits/organization.ts";
import type { Attendance, ObjectBindings } from "./bindings.ts";
import { inParallel } from "./organization/in-parallel.ts";
import { Roster, type RosterEntry } from "./organization/roster.ts";

export class Organization extends DurableObject<ObjectBindings> {
  readonly #roster: Roster;
  /** Tunnels that are being asked: whoever wants to know at the same time waits for the same answer. */
  readonly #asked = new Map<string, Promise<void>>();

  constructor(ctx: DurableObjectState, env: ObjectBindings) {
    super(ctx, env);
    this.#roster = new Roster(ctx.storage.sql);
  }

  // ── Called by workers ──

  /** Every agent that is connected now, the newest first. */
  async connections(): Promise<RosterEntry[]> {
    this.#roster.dropLeft(Date.now());
    await this.#ask(this.#roster.doubted(this.#roster.list(), Date.now()));
    return this.#roster.list();
  }

  /** @returns the tunnel that this agent serves now; null when there is no such agent. */
  async tunnelOf(agentId: string): Promise<string | null> {
    const entry = this.#roster.find(agentId);
    if (!entry) return null;
    await this.#ask(this.#roster.doubted([entry], Date.now()));
    return this.#roster.find(agentId)?.tunnelId ?? null;
  }

  // ── Called by tunnels ──

  attend(attendance: Attendance): void {
    this.#roster.take(attendance, Date.now());
  }

  // ── Inside ──

  async #ask(tunnelIds: string[]): Promise<void> {
    await inParallel(ATTENDANCE_ASKED_AT_ONCE, tunnelIds, (id) => {
      const asking = this.#asked.get(id) ?? this.#askOne(id);
      this.#asked.set(id, asking);
      return asking;
    });
  }

  /** A tunnel that can't be asked is believed as it was, and asked again by the next list. */
  async #askOne(tunnelId: string): Promise<void> {
    try {
      const attendance = await this.env.TUNNEL.getByName(tunnelId).attendance();
      if (attendance) this.#roster.take(attendance, Date.now());
      else this.#roster.forget(tunnelId);
    } catch {
      // Told by the list's age alone: nobody is wrongly left out.
    } finally {
      this.#asked.delete(tunnelId);
    }
  }
}
