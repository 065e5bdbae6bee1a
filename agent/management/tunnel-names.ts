/** The names of the tunnels that captured requests belong to. */
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { RejectionError } from "../rejection-error.ts";
import type { ManagementApi } from "./management-api.ts";

/** An organization has at most 2,000 tunnels that have not ended. */
const NAMES_MAX = 4_000;
/** The end of an id, for a tunnel that was deleted. */
const ID_SHOWN_CHARS = 8;

export class TunnelNames {
  readonly #api: ManagementApi;
  readonly #names = new BoundedMap<string, string>(NAMES_MAX);
  #loading: Promise<void> | undefined;

  constructor(api: ManagementApi) {
    this.#api = api;
  }

  /** The tunnel's name; the end of its id when it no longer exists. */
  async find(tunnelId: string): Promise<string> {
    const isUnknown = !this.#names.has(tunnelId);
    if (isUnknown) await (this.#loading ??= this.#load());
    const name = this.#names.get(tunnelId) ?? tunnelId.slice(-ID_SHOWN_CHARS);
    // The list is not read again for the same tunnel.
    if (isUnknown) this.#names.set(tunnelId, name);
    return name;
  }

  async #load(): Promise<void> {
    try {
      for await (const page of this.#api.listTunnels()) {
        for (const { id, subdomain } of page) this.#names.set(id, subdomain);
      }
    } catch (error) {
      // Requests are shown even if the names of their tunnels can't be read.
      if (!(error instanceof RejectionError)) throw error;
    } finally {
      this.#loading = undefined;
    }
  }
}
