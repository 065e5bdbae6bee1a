/** An agent that serves a TCP tunnel: the tunnel's public port, and the key of the agent's data connections. */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { TunnelWelcome } from "../../protocol/relay/control.ts";
import type { AssociationUsage } from "../../protocol/relay/link.ts";
import type { RelayTicket, TunnelTicket } from "../../protocol/relay/ticket.ts";
import type { AgentConnection, Association } from "../association.ts";
import type { Log } from "../log.ts";
import { formatHostAndPort } from "../../shared/hosts.ts";
import type { TunnelLimits } from "./tunnel-limits.ts";
import { TunnelPort } from "./tunnel-port.ts";
import type { VisitorSlots } from "./visitor-slots.ts";

/** Idle data connections that the agent keeps ready for the next visitors. */
const POOL_DATA_CONNECTIONS = 8;

interface TunnelAssociationOptions {
  ticket: TunnelTicket;
  id: number;
  epoch: string;
  /** The address to listen on. */
  bind: string;
  /** The host for visitors. */
  host: string;
  connection: AgentConnection;
  limits: TunnelLimits;
  connections: VisitorSlots;
  log: Log;
}

export class TunnelAssociation implements Association {
  readonly id: number;
  /** The bearer of data connections. */
  readonly streamKey = randomBytes(32).toString("base64url");
  readonly #options: TunnelAssociationOptions;
  readonly #port: TunnelPort;
  #ticket: TunnelTicket;

  constructor(options: TunnelAssociationOptions) {
    const { ticket, id, bind, connection, limits, connections, log } = options;
    this.#options = options;
    this.#ticket = ticket;
    this.id = id;
    this.#port = new TunnelPort({
      ticket,
      bind,
      log,
      limits,
      connections,
      sendOpen: (count) => connection.send({ type: "open", count }),
    });
  }

  get ticket(): TunnelTicket {
    return this.#ticket;
  }

  get welcome(): TunnelWelcome {
    const { epoch, host } = this.#options;
    return {
      type: "welcome",
      kind: "tunnel",
      epoch,
      association: this.id,
      streamKey: this.streamKey,
      pool: POOL_DATA_CONNECTIONS,
      publicEndpoint: formatHostAndPort(host, this.#ticket.port),
    };
  }

  async listen(): Promise<void> {
    await this.#port.listen();
  }

  takeDataConnection(socket: Socket, head: Buffer): void {
    this.#port.takeDataConnection(socket, head);
  }

  setAllowedCidrs(cidrs: string[] | null): void {
    this.#port.setAllowedCidrs(cidrs);
  }

  handleMessage(): void {
    // Flows, devices and paths exist only for networks.
  }

  handleDatagrams(): boolean {
    return false;
  }

  renew(ticket: RelayTicket): void {
    if (ticket.kind !== "tunnel") return;
    this.#ticket = ticket;
    this.#options.limits.setRate(ticket.mbps);
    this.#port.setAllowedCidrs(ticket.cidrs);
  }

  sweep(): void {
    // Connections have their own timers.
  }

  release(): void {
    this.#port.release();
  }

  close(): void {
    this.#port.close();
  }

  getUsage(): AssociationUsage {
    return {
      tunnelId: this.#ticket.sub,
      source: `${this.#options.epoch}/${this.id}`,
      tokenNonce: this.#ticket.nonce,
      ...this.#port.getUsage(),
    };
  }
}
