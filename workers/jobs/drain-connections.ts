/** Drains the connections of agents, watchers and relays before a self-hosted server stops. */
import { watchedOrganizations } from "../draining.ts";
import type { Env } from "../env.ts";
import { log } from "../../shared/log.ts";
import { organizationObject, relayObject, tunnelObject } from "../objects.ts";
import { listRelayIds } from "../store/networks/relays.ts";
import { listConnectedTunnelIds } from "../store/tunnels/reports.ts";
import { createDatabase } from "./outbox.ts";

/** Notifies agents, watchers and relays that the server stops, and lets requests in flight finish. */
export async function drainConnections(env: Env): Promise<void> {
  await Promise.all([drainTunnels(env), drainWatchers(env), drainRelays(env)]);
}

async function drainRelays(env: Env): Promise<void> {
  const ids = await listRelayIds(createDatabase(env));
  await Promise.allSettled(ids.map(async (id) => relayObject(env, id).drain()));
}

async function drainWatchers(env: Env): Promise<void> {
  const ids = [...watchedOrganizations];
  await Promise.allSettled(ids.map(async (id) => organizationObject(env, id).drain()));
}

async function drainTunnels(env: Env): Promise<void> {
  const ids = await listConnectedTunnelIds(createDatabase(env));
  const drained = await Promise.allSettled(ids.map(async (id) => tunnelObject(env, id).drain()));
  const failed = drained.filter(({ status }) => status === "rejected").length;
  log("info", "tunnels_drained", { tunnels: ids.length, failed });
}
