/** Several tunnels in one process. A new configuration opens, closes and reopens only those whose entries differ. */
import { EventEmitter } from "node:events";
import { isDeepStrictEqual } from "node:util";
import type { HttpTunnelDefinition } from "../tunnel/http-definition.ts";
import type { TunnelEntry } from "../config/parse-config.ts";
import { HttpTunnel } from "../tunnel/http-tunnel.ts";
import type { Target } from "../origin/target.ts";
import type { ServerAccess } from "../server-access.ts";
import type { TcpTarget } from "../tcp/tcp-target.ts";
import { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import { RejectionError } from "../rejection-error.ts";

/** Which tunnels to serve, and how to reach their server. */
export interface GroupConfig extends ServerAccess {
  entries: TunnelEntry[];
}

/** The names of the tunnels that a new configuration has changed. */
export type GroupChanges = Record<"opened" | "reopened" | "closed", string[]>;

export type NamedTunnel = Pick<TunnelEntry, "name" | "inspect"> &
  (
    | { protocol: "http"; tunnel: HttpTunnel; target: Target }
    | { protocol: "tcp"; tunnel: TcpTunnel; target: TcpTarget }
  );

interface GroupEventMap {
  /** The tunnel is about to connect. */
  opened: [tunnel: NamedTunnel];
  /** The tunnel accepts no more requests; those in flight may finish. */
  closing: [name: string];
  /** The tunnel is no longer served, because its entry has changed or is gone. */
  closed: [name: string];
  tunnelRejected: [name: string, rejection: RejectionError];
  notice: [message: string];
  /** All tunnels are rejected; the reason is that of the last one. */
  rejected: [rejection: RejectionError];
}

interface Member extends ServerAccess {
  entry: TunnelEntry;
  named: NamedTunnel;
  rejection: RejectionError | undefined;
}

export class TunnelGroup extends EventEmitter<GroupEventMap> {
  readonly #members = new Map<string, Member>();
  /** Where `--inspect` listens for all tunnels; undefined when it is off. */
  inspectUrl: string | undefined;
  #isApplying = false;
  #isClosed = false;

  /** How many requests of visitors are open, without WebSockets. */
  get openRequests(): number {
    const open = [...this.#members.values()].map(({ named }) =>
      named.protocol === "http" ? named.tunnel.openRequests : 0,
    );
    return open.reduce((sum, count) => sum + count, 0);
  }

  /**
   * Serves the tunnels of `config` and no others. Rejected tunnels are tried again. Requests in flight on tunnels that are
   * closed may finish, for up to `DRAIN_TIMEOUT_MS`. Must not be called again before it has resolved.
   * @throws UsageError when a tunnel can't be served as its entry says; then all tunnels stay as they are.
   */
  async apply(config: GroupConfig): Promise<GroupChanges> {
    const changes: GroupChanges = { opened: [], reopened: [], closed: [] };
    const names = new Set(config.entries.map(({ name }) => name));
    const gone = [...this.#members.values()].filter(({ entry }) => !names.has(entry.name));
    changes.closed.push(...gone.map(({ entry }) => entry.name));
    const replacements = config.entries.flatMap((entry) => {
      const before = this.#members.get(entry.name);
      if (before && isUnchanged(before, entry, config)) return [];
      changes[before ? "reopened" : "opened"].push(entry.name);
      return { before, member: createMember(entry, before, config) };
    });
    this.#isApplying = true;
    const replaced = replacements.map(async ({ before, member }) => {
      if (before) await this.#close(before);
      if (!this.#isClosed) this.#open(member);
    });
    await Promise.all([...gone.map((member) => this.#close(member)), ...replaced]);
    this.#isApplying = false;
    this.#endIfAllRejected();
    return changes;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#members.values()].map(({ named }) => named.tunnel.close()));
  }

  #open(member: Member): void {
    const { entry, named } = member;
    this.#members.set(entry.name, member);
    const reject = (rejection: RejectionError): void => {
      if (this.#members.get(entry.name) !== member || member.rejection) return;
      member.rejection = rejection;
      this.emit("tunnelRejected", entry.name, rejection);
      this.#endIfAllRejected();
    };
    this.emit("opened", named);
    named.tunnel.on("rejected", reject);
    named.tunnel.start();
  }

  async #close(member: Member): Promise<void> {
    this.emit("closing", member.entry.name);
    await member.named.tunnel.close();
    this.#members.delete(member.entry.name);
    this.emit("closed", member.entry.name);
  }

  #endIfAllRejected(): void {
    if (this.#isApplying || this.#isClosed) return;
    const rejections = [...this.#members.values()].map(({ rejection }) => rejection);
    const last = rejections.at(-1);
    if (last && rejections.every((rejection) => rejection)) this.emit("rejected", last);
  }
}

function isUnchanged(member: Member, entry: TunnelEntry, access: ServerAccess): boolean {
  return (
    member.rejection === undefined &&
    member.server.href === access.server.href &&
    member.token.equals(access.token) &&
    isDeepStrictEqual(member.authorities?.certificates, access.authorities?.certificates) &&
    isDeepStrictEqual(toComparable(member.entry), toComparable(entry))
  );
}

/** The fields name files, whose contents are in the definition. Functions are never equal, and a warning changes nothing. */
function toComparable({ fields, definition }: TunnelEntry): object {
  const target = { ...definition.target, createDispatcher: undefined, warning: undefined };
  return { fields, definition: { ...definition, target } };
}

/** A tunnel without a name of its own keeps the random one that it has, so that its URL survives a change of its options. */
function keepName(
  entry: TunnelEntry,
  before: Member | undefined,
  config: GroupConfig,
): TunnelEntry {
  if (before?.named.protocol !== "http" || entry.protocol !== "http") return entry;
  const { definition } = entry;
  const previous = before.entry.definition as HttpTunnelDefinition;
  const isRandom = !isNamed(definition) && !isNamed(previous);
  const isSamePlace =
    definition.settings.project === previous.settings.project &&
    before.server.href === config.server.href;
  const name = before.named.tunnel.welcome?.name;
  if (!isRandom || !isSamePlace || name === undefined) return entry;
  const settings = { ...definition.settings, subdomain: name };
  return { ...entry, definition: { ...definition, settings } };
}

/** Whether the entry chooses the tunnel's public name, by itself or in a URL. */
function isNamed({ settings, publicUrl }: HttpTunnelDefinition): boolean {
  return settings.subdomain !== undefined || publicUrl !== undefined;
}

/** @throws UsageError */
function createMember(entry: TunnelEntry, before: Member | undefined, config: GroupConfig): Member {
  const { entries: _entries, ...access } = config;
  const named = createTunnel(keepName(entry, before, config), access);
  return { ...access, entry, named, rejection: undefined };
}

function createTunnel(entry: TunnelEntry, access: ServerAccess): NamedTunnel {
  const { name, inspect } = entry;
  if (entry.protocol === "tcp") {
    const tunnel = new TcpTunnel({ ...entry.definition, ...access });
    return { name, inspect, protocol: "tcp", tunnel, target: entry.definition.target };
  }
  const tunnel = new HttpTunnel({ ...entry.definition, ...access });
  return { name, inspect, protocol: "http", tunnel, target: entry.definition.target };
}
