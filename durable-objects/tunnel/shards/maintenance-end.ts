/**
 * Maintenance ends with the agent's connection to the tunnel's first object, at all objects. An end that some of them have
 * not received yet is in storage, and the alarm repeats it.
 */
import type { AccessPolicy } from "../proxy/access-policy.ts";
import type { Shards } from "./shards.ts";

export interface MaintenanceEndReceiver {
  /** A maintenance with a newer version stays. */
  endMaintenance(version: number): Promise<void>;
}

const KEY = "shards-maintenance-end";

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;
type Access = Pick<AccessPolicy, "maintenance" | "endMaintenance">;
type TunnelObjects = Pick<Shards<MaintenanceEndReceiver>, "isFirst" | "hasOthers" | "forOthers">;

export class MaintenanceEnd {
  readonly #kv: Storage;
  readonly #access: Access;
  readonly #shards: TunnelObjects;

  constructor(kv: Storage, access: Access, shards: TunnelObjects) {
    this.#kv = kv;
    this.#access = access;
    this.#shards = shards;
  }

  /** The caller sets the alarm. Does nothing on any object but the first. */
  begin(): void {
    const { maintenance } = this.#access;
    if (!maintenance?.isOn || !this.#shards.isFirst) return;
    this.#access.endMaintenance(maintenance.version);
    if (this.#shards.hasOthers) this.#kv.put<number>(KEY, maintenance.version);
  }

  /** Called by the alarm, which retries what throws. */
  async deliver(): Promise<void> {
    const version = this.#kv.get<number>(KEY);
    if (version === undefined) return;
    await this.#shards.forOthers((it) => it.endMaintenance(version));
    if (this.#kv.get<number>(KEY) === version) this.#kv.delete(KEY);
  }
}
