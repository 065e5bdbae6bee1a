/** The tunnels as the inspector shows them: their states, their latest requests, and the connections of TCP tunnels. */
import type { RequestReport } from "../library/types.ts";
import type { ConnectionReport } from "../tcp/connection-report.ts";
import type { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import type { HttpTunnel } from "../tunnel/http-tunnel.ts";

/** Older ones are dropped, so that the agent's memory does not grow. All tunnels share them. */
const REQUESTS_MAX = 100;
const CONNECTIONS_MAX = 100;

type TunnelState = "connecting" | "online" | "reconnecting" | "stopped" | "closed";

export interface TunnelDescription {
  id: string;
  /** The name in underpass.yml, or else the one that visitors use. */
  name: string;
  /** null for a private TCP tunnel. */
  publicUrl: string | null;
  /** The command that connects to a private TCP tunnel. */
  connect?: string | undefined;
  local: string;
  protocol: "http" | "https" | "tcp";
  state: TunnelState;
  /** How many connections a TCP tunnel has had since the start, and how many are open now. */
  connections?: { count: number; open: number };
}

interface InspectedTunnel {
  /** In underpass.yml. */
  name: string | undefined;
  /** @returns undefined before the tunnel was connected for the first time. */
  describe(): TunnelDescription | undefined;
  listOpenConnections(): ConnectionReport[];
  server: URL;
}

type InspectedRequest = RequestReport & { tunnel: string; endedAt: string };
/** `endedAt` is null while the connection is open. */
type InspectedConnection = ConnectionReport & { tunnel: string; endedAt: string | null };

/** The events that tunnels of all protocols have. */
interface StatefulTunnel {
  on(event: "ready" | "reconnected" | "disconnected" | "stopped", listener: () => void): unknown;
  on(event: "rejected", listener: () => void): unknown;
}

export class InspectedTunnels {
  readonly #tunnels: InspectedTunnel[] = [];
  /** The newest first. */
  readonly #requests: InspectedRequest[] = [];
  readonly #ended: InspectedConnection[] = [];

  /** @param name in underpass.yml. */
  addHttp(tunnel: HttpTunnel, name?: string): void {
    const getState = watchState(tunnel);
    tunnel.on("request", (request) => {
      const endedAt = new Date().toISOString();
      this.#requests.unshift({ tunnel: name ?? tunnel.welcome?.name ?? "", ...request, endedAt });
      this.#requests.length = Math.min(this.#requests.length, REQUESTS_MAX);
    });
    this.#tunnels.push({
      name,
      describe() {
        const { welcome, origin } = tunnel;
        if (!welcome) return undefined;
        const { tunnelId: id, name: ownName, url: publicUrl } = welcome;
        const { origin: local, scheme: protocol } = origin.target;
        return { id, name: name ?? ownName, publicUrl, local, protocol, state: getState() };
      },
      listOpenConnections: () => [],
      server: tunnel.server,
    });
  }

  /** @param local the local server, as it is printed. @param name in underpass.yml. */
  addTcp(tunnel: TcpTunnel, local: string, name?: string): void {
    const getState = watchState(tunnel);
    let count = 0;
    tunnel.on("connectionOpened", () => void (count += 1));
    tunnel.on("connection", (connection) => {
      const endedAt = new Date().toISOString();
      this.#ended.unshift({ tunnel: name ?? tunnel.info?.name ?? "", ...connection, endedAt });
      this.#ended.length = Math.min(this.#ended.length, CONNECTIONS_MAX);
    });
    this.#tunnels.push({
      name,
      describe() {
        if (!tunnel.info) return undefined;
        const { tunnelId: id, name: ownName, url: publicUrl, connect } = tunnel.info;
        const connections = { count, open: tunnel.openConnections.length };
        return {
          id,
          name: name ?? ownName,
          publicUrl,
          connect,
          local,
          protocol: "tcp",
          state: getState(),
          connections,
        };
      },
      listOpenConnections: () => tunnel.openConnections,
      server: tunnel.server,
    });
  }

  /** Removes a tunnel of underpass.yml; its requests and connections stay. */
  remove(name: string): void {
    const at = this.#tunnels.findIndex((tunnel) => tunnel.name === name);
    if (at >= 0) this.#tunnels.splice(at, 1);
  }

  /** The tunnels that have been connected. */
  listTunnels(): TunnelDescription[] {
    return this.#tunnels.flatMap((tunnel) => tunnel.describe() ?? []);
  }

  /** The latest requests of all tunnels, newest first. */
  listRequests(): readonly InspectedRequest[] {
    return this.#requests;
  }

  /** Open connections of all tunnels, the latest first, and after them those that have ended. */
  listConnections(): InspectedConnection[] {
    const open = this.#tunnels.flatMap((tunnel) =>
      tunnel.listOpenConnections().map((connection) => ({
        tunnel: tunnel.describe()?.name ?? "",
        ...connection,
        endedAt: null,
      })),
    );
    const newest = open.toSorted((a, b) => a.durationMs - b.durationMs);
    return [...newest.slice(0, CONNECTIONS_MAX), ...this.#ended];
  }

  /** The tunnels that have been connected, with their pages in the dashboard: the captured requests, or of TCP the tunnel. */
  listPages(): [TunnelDescription, page: URL][] {
    return this.#tunnels.flatMap((tunnel): [TunnelDescription, URL][] => {
      const description = tunnel.describe();
      if (!description) return [];
      const { id, protocol } = description;
      const path = protocol === "tcp" ? `/tunnels/${id}` : `/requests?tunnel_id=${id}`;
      return [[description, new URL(path, tunnel.server)]];
    });
  }
}

/** @returns a function that tells the tunnel's state. */
function watchState(tunnel: HttpTunnel | TcpTunnel): () => TunnelState {
  const source = tunnel as StatefulTunnel;
  let state: TunnelState = "connecting";
  source.on("ready", () => void (state = "online"));
  source.on("reconnected", () => void (state = "online"));
  source.on("disconnected", () => void (state = "reconnecting"));
  source.on("stopped", () => void (state = "stopped"));
  source.on("rejected", () => void (state = "closed"));
  return () => state;
}
