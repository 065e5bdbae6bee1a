/** The API's routes of private networks, as far as the agent needs them. */
import { z } from "zod";
import { LIST_MAX_ROWS } from "../../protocol/limits.ts";
import {
  Device,
  DeviceEnrollment,
  NetworkConfig,
  PrivateNetwork,
  type RelayAccess,
} from "../../protocol/schemas/networks.ts";
import type { TrustedAuthorities } from "../outgoing/trusted-authorities.ts";
import { PROGRAM } from "../program.ts";
import { fetchRelayAccess } from "../relay-client/fetch-relay-access.ts";
import type { ServerAccess } from "../server-access.ts";
import { ServiceApi, type ExplainRejection } from "../service-api.ts";
import { RejectionError } from "../rejection-error.ts";

/** The addresses of a /16, the largest network. */
const DEVICES_MAX = 2 ** 16;

/** What to do when the server forbids a token something about networks. */
export const NETWORK_TOKEN_ADVICE = `Use an unrestricted token of a member, admin or owner: ${PROGRAM} login`;

/** Calls throw RejectionError when a retry can't succeed, and RetryableError when it may. */
export class NetworkApi {
  /** The CA certificates that are trusted for the server, and for its relays too. */
  readonly authorities: TrustedAuthorities | undefined;
  readonly #api: ServiceApi;

  constructor(access: ServerAccess, explain?: ExplainRejection) {
    this.authorities = access.authorities;
    this.#api = new ServiceApi(access, access.token, explain);
  }

  /** @returns null when no network has this name or id. */
  async find(nameOrId: string, signal: AbortSignal): Promise<PrivateNetwork | null> {
    const networks = await this.list(signal);
    return findByNameOrId(networks, nameOrId) ?? null;
  }

  /** @throws RejectionError with the names of the existing networks when there is none of this name or id. */
  async get(nameOrId: string, signal: AbortSignal): Promise<PrivateNetwork> {
    const networks = await this.list(signal);
    const found = findByNameOrId(networks, nameOrId);
    if (found) return found;
    const names = networks.map(({ name }) => name).join(", ");
    const known = names === "" ? "there are none yet" : `existing networks: ${names}`;
    throw new RejectionError(
      "not_found",
      `there is no private network called ${nameOrId}; ${known}`,
    );
  }

  fetchRelayAccess(id: string, signal: AbortSignal): Promise<RelayAccess> {
    return fetchRelayAccess(this.#api, `/private-networks/${id}/relay-ticket`, signal);
  }

  list(signal: AbortSignal): Promise<PrivateNetwork[]> {
    return this.#api.call(z.array(PrivateNetwork), "GET", "/private-networks", { signal });
  }

  create(name: string, cidr: string, signal: AbortSignal): Promise<PrivateNetwork> {
    const body = { name, cidr };
    return this.#api.call(PrivateNetwork, "POST", "/private-networks", { signal, body });
  }

  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#api.call(z.unknown(), "DELETE", `/private-networks/${id}`, { signal });
  }

  registerServer(
    id: string,
    publicKey: string,
    listenPort: number,
    signal: AbortSignal,
  ): Promise<PrivateNetwork> {
    const body = { server_public_key: publicKey, server_listen_port: listenPort };
    return this.#api.call(PrivateNetwork, "PUT", `/private-networks/${id}/server`, {
      signal,
      body,
    });
  }

  async getServerConfig(id: string, signal: AbortSignal): Promise<string> {
    const path = `/private-networks/${id}/server-config`;
    return (await this.#api.call(NetworkConfig, "GET", path, { signal })).config;
  }

  /** All of them, newest first: `--apply` removes the peer of a device that is not in the list. */
  async listDevices(id: string, signal: AbortSignal): Promise<Device[]> {
    const devices: Device[] = [];
    let page: Device[];
    do {
      const last = devices.at(-1);
      const path = `/private-networks/${id}/devices${last ? `?after=${last.id}` : ""}`;
      page = await this.#api.call(z.array(Device), "GET", path, { signal });
      devices.push(...page);
    } while (page.length === LIST_MAX_ROWS && devices.length < DEVICES_MAX);
    return devices;
  }

  async addDevice(
    id: string,
    name: string,
    publicKey: string,
    signal: AbortSignal,
  ): Promise<Device> {
    const path = `/private-networks/${id}/devices`;
    const body = { name, public_key: publicKey };
    return (await this.#api.call(DeviceEnrollment, "POST", path, { signal, body })).device;
  }

  async getDeviceConfig(id: string, deviceId: string, signal: AbortSignal): Promise<string> {
    const path = `/private-networks/${id}/devices/${deviceId}/config`;
    return (await this.#api.call(NetworkConfig, "GET", path, { signal })).config;
  }

  async removeDevice(id: string, deviceId: string, signal: AbortSignal): Promise<void> {
    const path = `/private-networks/${id}/devices/${deviceId}`;
    await this.#api.call(z.unknown(), "DELETE", path, { signal });
  }
}

function findByNameOrId(networks: PrivateNetwork[], nameOrId: string): PrivateNetwork | undefined {
  return networks.find(({ id, name }) => name === nameOrId || id === nameOrId);
}
