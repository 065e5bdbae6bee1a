/** One run of the relay: its link to the API, its agents, its own port, and the reports of their state. */
import { randomBytes } from "node:crypto";
import { RELAY_STATUS_INTERVAL_MS, RELAY_TICKET_USABLE_MAX_MS } from "../protocol/relay/limits.ts";
import type { ApiToRelayMessage } from "../protocol/relay/link.ts";
import { SERVICE_VERSION } from "../protocol/version.ts";
import { getErrorMessage } from "../shared/error-message.ts";
import { formatHostAndPort } from "../shared/hosts.ts";
import type { MetricFamily } from "../shared/metrics/exposition.ts";
import { getDescriptorLimit } from "../sockets/descriptor-limit.ts";
import { ApiLink } from "./api-link.ts";
import { Associations } from "./associations.ts";
import { getConnectionLimits } from "./limits.ts";
import type { Log } from "./log.ts";
import { Metrics } from "./metrics.ts";
import { Revocations } from "./revocations.ts";
import { RelayServer } from "./server.ts";
import type { RelaySettings } from "./settings.ts";
import { StatusReporter } from "./status-reporter.ts";
import { fetchJwks, TicketVerifier } from "./tickets.ts";

const ASSOCIATION_SWEEP_INTERVAL_MS = 1_000;
const REVOCATIONS_MAX = 10_000;

export class Relay {
  readonly #settings: RelaySettings;
  readonly #log: Log;
  /** Identifies this run. */
  readonly #epoch = randomBytes(12).toString("base64url");
  readonly #metrics = new Metrics();
  readonly #connectionLimits = getConnectionLimits(getDescriptorLimit());
  readonly #reporter = new StatusReporter();
  readonly #tickets: TicketVerifier;
  readonly #link: ApiLink;
  readonly #associations: Associations;
  readonly #server: RelayServer;
  #timers: NodeJS.Timeout[] = [];

  constructor(settings: RelaySettings, log: Log) {
    this.#settings = settings;
    this.#log = log;
    this.#tickets = new TicketVerifier({
      relayId: settings.id,
      fetchKeys: () => fetchJwks(settings.apiUrl, settings.apiHost),
      now: Date.now,
    });
    this.#link = this.#createLink();
    this.#associations = this.#createAssociations();
    this.#server = this.#createServer();
  }

  /** @throws Error when the relay's own port can't be bound. */
  async start(): Promise<void> {
    const { id: relayId, bind, agentPort: port, agentSocket } = this.#settings;
    const { firstPort, lastPort, url } = this.#settings;
    try {
      await this.#server.listen();
      await this.#associations.agentSocket.listen(bind, port);
    } catch (error) {
      const where = formatHostAndPort(bind, port);
      throw new Error(
        `the relay can't listen on ${where}: ${getErrorMessage(error)}; free this port, or choose another first port in ` +
          "RELAY_PORT_RANGE",
        { cause: error },
      );
    }
    if (agentSocket !== undefined) await this.#server.listenToFrontProxy(agentSocket);
    // The kernel may grant smaller buffers than requested.
    const udpBuffers = this.#associations.agentSocket.buffers;
    const connections = this.#connectionLimits;
    const fields = { relayId, bind, port, firstPort, lastPort, url, udpBuffers, connections };
    this.#log.info("relay started", fields);
    this.#link.connect();
    this.#timers = [
      setInterval(() => this.#associations.sweep(Date.now()), ASSOCIATION_SWEEP_INTERVAL_MS),
      setInterval(() => this.#report(), RELAY_STATUS_INTERVAL_MS),
    ];
  }

  /** Ends all associations, reports their last totals, and closes the ports. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#associations.closeAll();
    this.#report();
    // All are waited for, also after a failure: the link may still be sending the last totals.
    const parts = await Promise.allSettled([this.#server.close(), this.#link.close()]);
    this.#associations.agentSocket.close();
    for (const part of parts) {
      if (part.status === "fulfilled") continue;
      this.#log.error("could not close a part of the relay", {
        error: getErrorMessage(part.reason),
      });
    }
    this.#log.info("relay stopped");
  }

  // ── The parts ──

  #createLink(): ApiLink {
    const { id: relayId, host, url, firstPort, lastPort } = this.#settings;
    const version = SERVICE_VERSION;
    return new ApiLink({
      ...this.#settings,
      hello: {
        type: "hello",
        relayId,
        version,
        host,
        url,
        firstPort,
        lastPort,
        epoch: this.#epoch,
      },
      log: this.#log,
      onWelcome: () => {
        void this.#tickets.prefetchKeys();
        this.#reporter.reset();
        this.#report();
      },
      onMessage: (message) => this.#handleMessage(message),
    });
  }

  #createAssociations(): Associations {
    return new Associations({
      settings: this.#settings,
      epoch: this.#epoch,
      link: this.#link,
      revocations: new Revocations({
        maxEntries: REVOCATIONS_MAX,
        maxAgeMs: RELAY_TICKET_USABLE_MAX_MS,
      }),
      metrics: this.#metrics,
      log: this.#log,
      onEnd: (association) => this.#reporter.recordEnd(association, Date.now()),
      visitorsMax: this.#connectionLimits.visitors,
    });
  }

  #createServer(): RelayServer {
    const { id: relayId, bind, agentPort: port, secret } = this.#settings;
    return new RelayServer({
      associations: this.#associations,
      tickets: this.#tickets,
      metrics: this.#metrics,
      log: this.#log,
      bind,
      port,
      secret,
      health: () => ({
        status: "ok",
        relayId,
        epoch: this.#epoch,
        linked: this.#link.isConnected,
        pid: process.pid,
      }),
      collectMetrics: () => this.#collectMetrics(),
      maxConnections: this.#connectionLimits.agents,
    });
  }

  // ── While it runs ──

  #handleMessage(message: Exclude<ApiToRelayMessage, { type: "welcome" }>): void {
    switch (message.type) {
      case "revoke":
        this.#associations.revoke(message);
        if (message.reason === "network_deleted" && message.id !== undefined)
          this.#reporter.forgetNetwork(message.id);
        return;
      case "allowed_cidrs":
        return this.#associations.setAllowedCidrs(message.tunnelId, message.cidrs, message.asOfMs);
      case "ports":
        this.#metrics.reservedPorts = { udp: message.reservedUdp, tcp: message.reservedTcp };
    }
  }

  #report(): void {
    if (!this.#link.isConnected) return;
    for (const message of this.#reporter.collect(this.#associations.list(), Date.now())) {
      this.#link.send(message);
    }
  }

  #collectMetrics(): MetricFamily[] {
    const { firstPort, lastPort } = this.#settings;
    const associations = this.#associations;
    const kinds = associations.list().map(({ ticket }) => ticket.kind);
    return this.#metrics.toFamilies({
      isLinked: this.#link.isConnected,
      associations: {
        network: kinds.filter((kind) => kind === "network").length,
        tunnel: kinds.filter((kind) => kind === "tunnel").length,
      },
      flows: associations.flows,
      ports: lastPort - firstPort + 1,
      openConnections: associations.connections.taken,
      tcp: associations.tcpTotals,
    });
  }
}
