/** The parts of a tunnel's object. Each knows only parts above it; the one call upwards is the event of `Agents`. */
import { getAddressTrust } from "../../shared/client-address.ts";
import { RequestTrace } from "../../shared/tracing/request-trace.ts";
import { buildAuthenticators } from "../../access/authenticators/authenticators.ts";
import { getPublicAddress } from "../../protocol/public-address.ts";
import type { ObjectBindings } from "../bindings.ts";
import type { TunnelReport } from "../rpc.ts";
import { Agents } from "./agents/agents.ts";
import { LastAgent } from "./agents/last-agent.ts";
import { Lifetime } from "./lifetime.ts";
import { PresenceReporter } from "./agents/presence-reporter.ts";
import { Alarm } from "./alarm.ts";
import { Captures } from "./captures/captures.ts";
import { CaptureFeed } from "./captures/feed.ts";
import { MetricsReporter, type ReportedState } from "./metrics/metrics-reporter.ts";
import { AccessPolicy } from "./proxy/access-policy.ts";
import { CustomHosts } from "./proxy/custom-hosts.ts";
import { DepartedVisitors } from "./proxy/departed-visitors.ts";
import { Visitors } from "./proxy/visitors.ts";
import { CaptureReader, type CaptureSource } from "./shards/capture-reader.ts";
import { MaintenanceEnd, type MaintenanceEndReceiver } from "./shards/maintenance-end.ts";
import type { Shards } from "./shards/shards.ts";
import { Clients } from "./tcp/clients.ts";
import { RelayCommandSender } from "./tcp/relay-command-sender.ts";

/** The calls that the parts make on the tunnel's other objects. */
interface OtherObject extends CaptureSource, MaintenanceEndReceiver {
  addShardReport(shard: number, report: TunnelReport): Promise<void>;
}

export type TunnelParts = ReturnType<typeof createParts>;

/** @param onAgentDisconnected visitors' requests may wait for an agent that will return. */
export function createParts(
  ctx: DurableObjectState,
  env: Omit<ObjectBindings, "TUNNEL">,
  shards: Shards<OtherObject>,
  onAgentDisconnected: (willReturn: boolean) => void,
) {
  const { storage } = ctx;
  const { kv } = storage;
  const getShardCount = () => shards.count;
  const getTunnelId = (): string | undefined => shards.tunnelId ?? reports.tunnelId;
  const getKnownTunnelId = () => getTunnelId() ?? "";
  const alarm = new Alarm(storage);
  const lifetime = new Lifetime(kv);
  const lastAgent = new LastAgent(kv);
  const customHosts = new CustomHosts(storage);
  const access = new AccessPolicy(storage, buildAuthenticators(env), {
    getTunnelId: getKnownTunnelId,
    getShardCount,
  });
  const maintenanceEnd = new MaintenanceEnd(kv, access, shards);
  const agents = new Agents(ctx, getShardCount, onAgentDisconnected);
  const presence = new PresenceReporter(kv, env, agents, getKnownTunnelId);
  const feed = new CaptureFeed(kv, presence);
  const currentState = (): ReportedState => {
    const agentConnected = agents.isAnyServing(Date.now());
    const lastSeenAtMs = agentConnected ? Date.now() : lastAgent.disconnectedAtMs;
    return { agentConnected, lastSeenAtMs, maintenance: access.isInMaintenance };
  };
  const toFirst = (report: TunnelReport) => shards.first.addShardReport(shards.shard, report);
  const reports: MetricsReporter = new MetricsReporter(
    storage,
    alarm,
    shards.isFirst ? env.INTERNAL_API : { reportTunnel: toFirst },
    {
      currentState,
      servingToken: () => agents.servingToken,
      endsAtMs: () => lifetime.expiresAtMs,
    },
  );
  const relay = new RelayCommandSender(kv, env.RELAY, () => reports.tunnelId);
  const captures = new Captures(storage, {
    tunnelId: getTunnelId,
    shard: () => shards.shard,
    alarm,
    feed,
    isRetired: lifetime.isRetired,
  });
  const captureReader = new CaptureReader(captures, shards);
  const visitors = new Visitors(ctx, {
    agents,
    lastAgent,
    lifetime,
    access,
    customHosts,
    captures,
    reports,
    trust: getAddressTrust(env),
    publicAddress: getPublicAddress(env),
    trace: new RequestTrace("tunnel", env.TRACE_REQUESTS),
    departed: env.FRONT_PROXY && new DepartedVisitors(env.FRONT_PROXY),
  });
  const clients = new Clients(ctx, { agents, alarm, access, reports, visitors });
  return {
    alarm,
    lifetime,
    lastAgent,
    customHosts,
    access,
    maintenanceEnd,
    agents,
    presence,
    feed,
    reports,
    relay,
    captures,
    captureReader,
    visitors,
    clients,
  };
}
