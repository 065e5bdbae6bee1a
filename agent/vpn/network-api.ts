/** The routes of private networks that the agent needs. */
import { z } from "zod";
import {
  Device,
  DeviceEnrollment,
  NetworkConfig,
  PrivateNetwork,
} from "../../protocol/schemas/networks.ts";
import { ServiceApi } from "../service-api.ts";
import { RejectionError } from "../tunnel-connection.ts";

/** Calls throw `Rejected` when asking again would change nothing, and `Unreachable` when it may. */
export class NetworkApi {
  readonly #api: ServiceApi;

  constructor(server: URL, token: Buffer) {
    this.#api = new ServiceApi(server, token);
  }

  /** @returns null when no network has this name or id. */
  async find(nameOrId: string, signal: AbortSignal): Promise<PrivateNetwork | null> {
    const networks = await this.list(signal);
    return networks.find(({ id, name }) => name === nameOrId || id === nameOrId) ?? null;
  }

  /** @throws Rejected with the names that there are. */
  async get(nameOrId: string, signal: AbortSignal): Promise<PrivateNetwork> {
    const networks = await this.list(signal);
    const found = networks.find(({ id, name }) => name === nameOrId || id === nameOrId);
    if (found) return found;
    const names = networks.map(({ name }) => name).join(", ");
    const known = names === "" ? "there is none yet" : `there are: ${names}`;
    throw new RejectionError("not_found", `there is no private network ${nameOrId}; ${known}`);
  }

  list(signal: AbortSignal): Promise<PrivateNetwork[]> {
    return this.#api.call(z.array(PrivateNetwork), "GET", "/private-networks", { signal });
  }

  create(name: string, cidr: string, signal: AbortSignal): Promise<PrivateNetwork> {
    const body = { name, cidr };
    return this.#api.call(PrivateNetwork, "POST", "/private-networks", { signal, body });
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

  async serverConfig(id: string, signal: AbortSignal): Promise<string> {
    const path = `/private-networks/${id}/server-config`;
    return (await this.#api.call(NetworkConfig, "GET", path, { signal })).config;
  }

  devices(id: string, signal: AbortSignal): Promise<Device[]> {
    const path = `/private-networks/${id}/devices`;
    return this.#api.call(z.array(Device), "GET", path, { signal });
  }

  async enroll(id: string, name: string, publicKey: string, signal: AbortSignal): Promise<Device> {
    const path = `/private-networks/${id}/devices`;
    const body = { name, public_key: publicKey };
    return (await this.#api.call(DeviceEnrollment, "POST", path, { signal, body })).device;
  }

  async deviceConfig(id: string, deviceId: string, signal: AbortSignal): Promise<string> {
    const path = `/private-networks/${id}/devices/${deviceId}/config`;
    return (await this.#api.call(NetworkConfig, "GET", path, { signal })).config;
  }

  async removeDevice(id: string, deviceId: string, signal: AbortSignal): Promise<void> {
    const path = `/private-networks/${id}/devices/${deviceId}`;
    await this.#api.call(z.unknown(), "DELETE", path, { signal });
  }
}
