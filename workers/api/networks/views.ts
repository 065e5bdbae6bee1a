/** Networks and devices in the form of the API: their rows, and their status at the relay. */
import type { DeviceTotals, NetworkSummary } from "../../../durable-objects/relay/networks.ts";
import { numberToIpv4, parseCidr } from "../../../shared/cidr.ts";
import type { Device, NetworkRelay, PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import type { Env } from "../../env.ts";
import { describeError } from "../../errors.ts";
import { log } from "../../../shared/log.ts";
import { formatHostAndPort } from "../../../shared/hosts.ts";
import { relayObject } from "../../objects.ts";
import type { DeviceRow } from "../../store/networks/devices.ts";
import type { Network } from "../../store/networks/networks.ts";

/** A list waits at most this long for the object of a relay. */
const STATUS_WAIT_MAX_MS = 2_000;

const UNKNOWN_RELAY: NetworkRelay = {
  state: "offline",
  latency_ms: null,
  loss: null,
  last_seen_at: null,
  server_listening: null,
  wrong_key_handshakes: 0,
};

/** A network without a status is reported as offline. */
export async function loadNetworkViews(env: Env, networks: Network[]): Promise<PrivateNetwork[]> {
  const byRelay = Map.groupBy(networks, ({ relayId }) => relayId);
  byRelay.delete(null);
  const answers = await Promise.all(
    [...byRelay].map(([relayId, some]) => {
      const ids = some.map(({ id }) => id);
      const none: Record<string, NetworkSummary> = {};
      return withFallback(none, async () =>
        relayObject(env, relayId ?? "").findNetworkSummaries(ids),
      );
    }),
  );
  const status = Object.assign({}, ...answers) as Record<string, NetworkSummary | undefined>;
  return networks.map((network) => toNetwork(network, status[network.id]));
}

export async function loadNetworkView(env: Env, network: Network): Promise<PrivateNetwork> {
  const [one] = await loadNetworkViews(env, [network]);
  return one!;
}

export async function loadDeviceViews(
  env: Env,
  { id, cidr, relayId }: Pick<Network, "id" | "cidr" | "relayId">,
  rows: DeviceRow[],
): Promise<Device[]> {
  const ask = async () => (relayId === null ? [] : relayObject(env, relayId).listDeviceTotals(id));
  const seen = rows.length === 0 ? [] : await withFallback<DeviceTotals[]>([], ask);
  const status = new Map(seen.map((device) => [device.publicKey, device]));
  return rows.map((row) => toDevice(cidr, row, status.get(row.publicKey)));
}

/** `host:port` for clients: the server's own, otherwise that of the relay. null while no server is registered. */
export function getPublicEndpoint({
  serverPublicKey,
  ownEndpoint,
  relayHost,
  reservedUdpPort: port,
}: Network): string | null {
  if (serverPublicKey === null) return null;
  if (ownEndpoint !== null) return ownEndpoint;
  if (relayHost === null || port === null) return null;
  return formatHostAndPort(relayHost, port);
}

/** @param hostNumber position of the address in the block. */
export function getAddressAt(cidr: string, hostNumber: number): string {
  return numberToIpv4(parseCidr(cidr)!.ipv4!.first + hostNumber);
}

function toNetwork(network: Network, status: NetworkSummary | undefined): PrivateNetwork {
  return {
    id: network.id,
    name: network.name,
    cidr: network.cidr,
    server_public_key: network.serverPublicKey,
    public_endpoint: getPublicEndpoint(network),
    server_listen_port: network.serverListenPort,
    reserved_udp_port: network.reservedUdpPort,
    relay_id: network.relayId,
    relay: status ? toRelay(status) : UNKNOWN_RELAY,
    created_at: network.createdAt.toISOString(),
  };
}

function toRelay(status: NetworkSummary): NetworkRelay {
  return {
    state: status.state,
    latency_ms: status.latencyMs,
    loss: status.loss,
    last_seen_at: toTimestamp(status.lastSeenAtMs),
    server_listening: status.isLocalListening,
    wrong_key_handshakes: status.wrongKeyHandshakes,
  };
}

function toDevice(cidr: string, row: DeviceRow, status: DeviceTotals | undefined): Device {
  return {
    id: row.id,
    name: row.name,
    assigned_ip: getAddressAt(cidr, row.hostNumber),
    public_key: row.publicKey,
    last_handshake_at: toTimestamp(status?.lastHandshakeAtMs ?? null),
    endpoint: status?.endpoint ?? null,
    rx_bytes: status?.rxBytes ?? null,
    tx_bytes: status?.txBytes ?? null,
    created_at: row.createdAt.toISOString(),
  };
}

function toTimestamp(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** A list does not fail when the object of a relay cannot be reached. */
async function withFallback<Answer>(
  otherwise: Answer,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  const answer = ask().catch((error: unknown) => {
    log("warn", "relay_status_failed", { cause: describeError(error) });
    return otherwise;
  });
  const late = scheduler.wait(STATUS_WAIT_MAX_MS).then(() => otherwise);
  return Promise.race([answer, late]);
}
