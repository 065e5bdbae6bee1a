/** `npm run relay`: public TCP and UDP ports for agents that have none of their own (docs/protocols/relay-protocol.md). */
import { randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import { RELAY_STATUS_INTERVAL_MS } from "../protocol/relay/limits.ts";
import { SERVICE_VERSION } from "../protocol/version.ts";
import { getErrorMessage } from "../shared/error-message.ts";
import { formatHostAndPort } from "../shared/hosts.ts";
import { ApiLink } from "./api-link.ts";
import { Associations } from "./associations.ts";
import {
  ASSOCIATION_SWEEP_INTERVAL_MS,
  REVOCATIONS_MAX,
  TICKET_LIFETIME_MAX_MS,
} from "./limits.ts";
import { createLog } from "./log.ts";
import { Metrics } from "./metrics.ts";
import { Revocations } from "./revocations.ts";
import { RelayServer } from "./server.ts";
import { readSettings, type RelaySettings, SettingsError } from "./settings.ts";
import { StatusReporter } from "./status-reporter.ts";
import { fetchJwks, TicketVerifier } from "./tickets.ts";

const log = createLog(process.stdout);

async function main(given: RelaySettings): Promise<void> {
  const stopped = waitUntilStopped();
  const settings = { ...given, bind: await resolveBind(given.bind) };
  const epoch = randomBytes(12).toString("base64url");
  const metrics = new Metrics();
  const reporter = new StatusReporter();
  const revocations = new Revocations({
    maxEntries: REVOCATIONS_MAX,
    maxAgeMs: TICKET_LIFETIME_MAX_MS,
  });
  const tickets = new TicketVerifier({
    relayId: settings.id,
    fetchKeys: () => fetchJwks(settings.apiUrl, settings.apiHost),
    now: Date.now,
  });
  const link = new ApiLink({
    ...settings,
    hello: {
      type: "hello",
      relayId: settings.id,
      version: SERVICE_VERSION,
      host: settings.host,
      url: settings.url,
      firstPort: settings.firstPort,
      lastPort: settings.lastPort,
      epoch,
    },
    log,
    onWelcome() {
      void tickets.prefetchKeys();
      reporter.resetSent();
      report(true);
    },
    onMessage(message) {
      switch (message.type) {
        case "revoke":
          return associations.revoke(message);
        case "allowed_cidrs":
          return associations.setAllowedCidrs(message.tunnelId, message.cidrs, message.asOfMs);
        case "ports":
          metrics.reservedPorts = { udp: message.reservedUdp, tcp: message.reservedTcp };
      }
    },
  });
  const associations = new Associations({ settings, epoch, link, revocations, metrics, log });
  associations.onEnd = (association) => reporter.recordEnd(association, Date.now());
  function report(isFirst = false): void {
    if (!link.isConnected) return;
    for (const message of reporter.collect(associations.list(), Date.now(), isFirst)) {
      link.send(message);
    }
  }

  const server = new RelayServer({
    associations,
    tickets,
    metrics,
    log,
    bind: settings.bind,
    port: settings.agentPort,
    secret: settings.secret,
    health: () => ({
      status: "ok",
      relayId: settings.id,
      epoch,
      linked: link.isConnected,
      pid: process.pid,
    }),
    collectMetrics: () => {
      const all = associations.list();
      return metrics.toFamilies({
        isLinked: link.isConnected,
        associations: {
          network: all.filter(({ ticket }) => ticket.kind === "network").length,
          tunnel: all.filter(({ ticket }) => ticket.kind === "tunnel").length,
        },
        flows: associations.flows,
        ports: settings.lastPort - settings.firstPort + 1,
        openConnections: associations.connections.taken,
        tcp: associations.tcpTotals,
      });
    },
  });

  try {
    await server.listen();
    await associations.agentSocket.listen(settings.bind, settings.agentPort);
  } catch (error) {
    const where = formatHostAndPort(settings.bind, settings.agentPort);
    throw new Error(
      `the relay can't listen on ${where}: ${getErrorMessage(error)}; free this port, or choose another first port in ` +
        "RELAY_PORT_RANGE",
      { cause: error },
    );
  }
  if (settings.agentSocket !== undefined) await server.listenToFrontProxy(settings.agentSocket);
  log.info("relay started", {
    ...{ relayId: settings.id, bind: settings.bind, port: settings.agentPort },
    ...{ firstPort: settings.firstPort, lastPort: settings.lastPort, url: settings.url },
    // The kernel may grant smaller buffers than requested.
    ...{ udpBuffers: associations.agentSocket.buffers },
  });
  link.connect();
  const timers = [
    setInterval(() => associations.sweep(Date.now()), ASSOCIATION_SWEEP_INTERVAL_MS),
    setInterval(() => report(), RELAY_STATUS_INTERVAL_MS),
  ];

  await stopped;
  for (const timer of timers) clearInterval(timer);
  associations.closeAll();
  report();
  await Promise.all([server.close(), link.close()]);
  associations.agentSocket.close();
  log.info("relay stopped");
}

/** Resolves a host name of this machine to its address. */
async function resolveBind(bind: string): Promise<string> {
  try {
    return (await lookup(bind)).address;
  } catch (error) {
    throw new Error(
      `RELAY_BIND: ${bind} is not an address or a name of this machine: ${getErrorMessage(error)}`,
      { cause: error },
    );
  }
}

/** Resolves with the first signal. */
async function waitUntilStopped(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => resolve());
  await promise;
}

try {
  await main(readSettings(process.env));
  process.exit(0);
} catch (error) {
  if (error instanceof SettingsError) process.stderr.write(`relay: ${error.message}\n`);
  else log.error(getErrorMessage(error));
  process.exit(1);
}
