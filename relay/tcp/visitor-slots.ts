/**
 * The connections of the visitors of all TCP tunnels of a relay. One source gets at most half of them, and so do all tunnels of
 * one organization, so that neither can keep the visitors of others out.
 */
import { getAddressGroup } from "../../shared/address-group.ts";
import { SourceSlots } from "../../shared/bounds/source-slots.ts";

export class VisitorSlots {
  readonly #bySource: SourceSlots;
  readonly #byOrganization: SourceSlots;

  constructor(total: number) {
    this.#bySource = new SourceSlots(total);
    this.#byOrganization = new SourceSlots(total);
  }

  get taken(): number {
    return this.#bySource.taken;
  }

  /** @param address the visitor's. @returns false when its source or the organization may not have another connection. */
  take(orgId: string, address: string): boolean {
    if (!this.#byOrganization.hasRoom(orgId)) return false;
    if (!this.#bySource.take(getAddressGroup(address))) return false;
    this.#byOrganization.add(orgId);
    return true;
  }

  /** Call it once for each connection. */
  free(orgId: string, address: string): void {
    this.#bySource.free(getAddressGroup(address));
    this.#byOrganization.free(orgId);
  }
}
