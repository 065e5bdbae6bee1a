/**
 * A WireGuard peer in user space for tests: it initiates and answers handshakes, and sends to the source address of a
 * remote peer's newest message. Payloads are any bytes; for a peer in the kernel or wireguard-go they must be IP
 * packets. It has no timers for rekeying or keepalives.
 */
import { randomInt } from "node:crypto";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { EventEmitter, on, once } from "node:events";
import { WAIT_MAX_MS } from "../timeouts.ts";
import { newKeyPair, toKeyPair } from "./crypto.ts";
import {
  MESSAGE,
  readInitiation,
  readResponse,
  writeInitiation,
  writeResponse,
  type Initiation,
} from "./handshake.ts";
import { DATA_OVERHEAD_BYTES, Session } from "./session.ts";

export interface Endpoint {
  address: string;
  port: number;
}

export interface PeerOptions {
  /** In base64, as `wg genkey` prints it; otherwise a new one. */
  privateKey?: string;
  listenPort?: number;
  /** The address of its socket; 127.0.0.1 by default. */
  address?: string;
  /** In base64, for all remote peers. */
  presharedKey?: string;
  /** Public keys of allowed peers, as with `wg set … peer`; by default all. */
  allowed?: string[];
  /** Sends each payload back to its sender. */
  echo?: boolean;
}

export interface ReceivedPayload {
  /** The sender's public key. */
  from: string;
  payload: Buffer;
}

interface PeerEvents {
  payload: [ReceivedPayload];
  /** The remote peer's public key. */
  handshake: [string];
}

interface Remote {
  publicKey: string;
  endpoint: Endpoint;
  /** Sessions that messages are accepted from, the newest last. */
  sessions: Session[];
  /** The session to send with. */
  current: Session | undefined;
  lastTimestamp: Uint8Array;
  handshakes: number;
}

interface PendingInitiation {
  remote: Remote;
  initiation: Initiation;
}

/** On a busy machine, a responder answers many repeated initiations at once, and the initiator uses the first session. */
const SESSIONS_MAX = 32;
/** Delay before a lost initiation or response is repeated. WireGuard waits for 5 s, which would slow tests down. */
const INITIATION_INTERVAL_MS = 500;

export async function createPeer(options: PeerOptions = {}): Promise<WireGuardPeer> {
  const peer = new WireGuardPeer(options);
  await peer.bind(options.listenPort ?? 0);
  return peer;
}

export class WireGuardPeer implements AsyncDisposable {
  /** In base64. */
  readonly publicKey: string;
  /** All accepted payloads in the order of arrival, without keepalives. */
  readonly received: ReceivedPayload[] = [];
  /** Messages that no session accepted. */
  readonly rejected = { forged: 0, replayed: 0, unknown: 0 };
  readonly events = new EventEmitter<PeerEvents>();
  /** `false` leaves initiations unanswered, like a server that is down. */
  isAnswering = true;

  readonly #options: PeerOptions;
  readonly #keys;
  readonly #presharedKey: Uint8Array;
  readonly #remotes = new Map<string, Remote>();
  readonly #sessions = new Map<number, { session: Session; remote: Remote }>();
  readonly #pending = new Map<number, PendingInitiation>();
  /** Indices of initiations that need no further response, because one of the same handshake was answered. */
  readonly #superseded = new Set<number>();
  #socket: Socket | undefined;

  constructor(options: PeerOptions) {
    this.#options = options;
    this.#keys =
      options.privateKey === undefined
        ? newKeyPair()
        : toKeyPair(Buffer.from(options.privateKey, "base64"));
    this.#presharedKey = Buffer.from(options.presharedKey ?? "A".repeat(43) + "=", "base64");
    this.publicKey = toBase64(this.#keys.publicKey);
    // One listener for each `arrival` that is awaited.
    this.events.setMaxListeners(0);
  }

  get privateKey(): string {
    return toBase64(this.#keys.privateKey);
  }

  get port(): number {
    return this.#socket?.address().port ?? 0;
  }

  // ── Sending ──

  /** Initiates a handshake, repeatedly until it is answered. A second one with the same peer is a rekey. */
  async handshake(endpoint: Endpoint, publicKey: string): Promise<void> {
    const remote = this.#getOrAddRemote(publicKey, endpoint);
    remote.endpoint = endpoint;
    const done = this.#waitForEvent("handshake", (key) => key === publicKey);
    const timer = setInterval(() => this.initiate(endpoint, publicKey), INITIATION_INTERVAL_MS);
    this.initiate(endpoint, publicKey);
    await done.finally(() => clearInterval(timer));
  }

  /** Sends one initiation and does not wait. */
  initiate(endpoint: Endpoint, publicKey: string): Uint8Array {
    const remote = this.#getOrAddRemote(publicKey, endpoint);
    const index = this.#newIndex();
    const initiation = writeInitiation(this.#keys, Buffer.from(publicKey, "base64"), index);
    this.#pending.set(index, { remote, initiation });
    this.sendRaw(initiation.message, endpoint);
    return initiation.message;
  }

  /** @param to by default the only remote peer. */
  send(payload: Uint8Array | string, to?: string): void {
    const remote = this.#getRemote(to);
    this.sendRaw(this.encryptPayload(payload, to), remote.endpoint);
  }

  keepalive(to?: string): void {
    this.send(new Uint8Array(), to);
  }

  /** The data message that `send` would send. */
  encryptPayload(payload: Uint8Array | string, to?: string): Uint8Array {
    const { current } = this.#getRemote(to);
    if (!current) throw new Error("there is no session yet");
    return current.write(typeof payload === "string" ? Buffer.from(payload) : payload);
  }

  /** Any bytes from this peer's socket. */
  sendRaw(bytes: Uint8Array, { address, port }: Endpoint): void {
    this.#socket?.send(bytes, port, address);
  }

  // ── State ──

  /** The last address of the remote peer. */
  endpoint(of?: string): Endpoint {
    return this.#getRemote(of).endpoint;
  }

  /** Number of completed handshakes with a remote peer, in either role. */
  handshakes(of?: string): number {
    return this.#getRemote(of).handshakes;
  }

  texts(from?: string): string[] {
    return this.received
      .filter((received) => from === undefined || received.from === from)
      .map(({ payload }) => payload.toString());
  }

  /** Resolves when a payload with this text has arrived. */
  async waitForPayload(text: string): Promise<void> {
    if (this.texts().includes(text)) return;
    await this.#waitForEvent("payload", ({ payload }) => payload.toString() === text);
  }

  async #waitForEvent<Name extends keyof PeerEvents>(
    name: Name,
    matches: (argument: PeerEvents[Name][0]) => boolean,
  ): Promise<void> {
    const signal = AbortSignal.timeout(WAIT_MAX_MS);
    for await (const [argument] of on(this.events, name, { signal }))
      if (matches(argument as PeerEvents[Name][0])) return;
  }

  // ── Socket ──

  /** Uses a new source port, like a client that changes its network. */
  async rebind(): Promise<void> {
    await this.close();
    await this.bind(0);
  }

  async bind(port: number): Promise<void> {
    const socket = createSocket({ type: "udp4", recvBufferSize: 4 * 2 ** 20 });
    // An ICMP error of a broken path is an ordinary loss to a peer.
    socket.on("error", () => undefined);
    socket.bind(port, this.#options.address ?? "127.0.0.1");
    await once(socket, "listening");
    socket.on("message", (message, from) => this.#receive(message, from));
    this.#socket = socket;
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    this.#socket = undefined;
    if (!socket) return;
    socket.close();
    await once(socket, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── Receiving ──

  #receive(message: Buffer, { address, port }: RemoteInfo): void {
    const from = { address, port };
    switch (message[0]) {
      case MESSAGE.initiation:
        return this.#receiveInitiation(message, from);
      case MESSAGE.response:
        return this.#receiveResponse(message, from);
      case MESSAGE.data:
        return this.#receiveData(message, from);
      default:
        this.rejected.unknown += 1;
    }
  }

  #receiveInitiation(message: Buffer, from: Endpoint): void {
    const initiation = readInitiation(this.#keys, message);
    if (!initiation) {
      this.rejected.forged += 1;
      return;
    }
    const publicKey = toBase64(initiation.publicKey);
    const { allowed } = this.#options;
    if (!this.isAnswering || (allowed && !allowed.includes(publicKey))) return;
    const remote = this.#getOrAddRemote(publicKey, from);
    if (Buffer.compare(initiation.timestamp, remote.lastTimestamp) <= 0) {
      this.rejected.replayed += 1;
      return;
    }
    remote.lastTimestamp = initiation.timestamp;
    remote.endpoint = from;
    const index = this.#newIndex();
    const response = writeResponse(initiation, index, this.#presharedKey);
    this.#addSession(remote, new Session(index, initiation.index, response.keys));
    this.sendRaw(response.message, from);
  }

  #receiveResponse(message: Buffer, from: Endpoint): void {
    const index = message.byteLength < 12 ? -1 : message.readUInt32LE(8);
    if (this.#superseded.has(index)) return;
    const pending = this.#pending.get(index);
    const response =
      pending && readResponse(this.#keys, pending.initiation, message, this.#presharedKey);
    if (!response) {
      this.rejected.forged += 1;
      return;
    }
    const { remote } = pending;
    for (const [other, { remote: of }] of this.#pending) {
      if (of !== remote) continue;
      this.#pending.delete(other);
      this.#superseded.add(other);
    }
    remote.endpoint = from;
    const session = new Session(index, response.index, response.keys);
    this.#addSession(remote, session);
    this.#startUsing(remote, session);
    // The responder may not send before it has seen data (§5.1).
    this.keepalive(remote.publicKey);
  }

  #receiveData(message: Buffer, from: Endpoint): void {
    const found =
      message.byteLength < DATA_OVERHEAD_BYTES
        ? undefined
        : this.#sessions.get(message.readUInt32LE(4));
    if (!found) {
      this.rejected.unknown += 1;
      return;
    }
    const { session, remote } = found;
    const payload = session.read(message);
    if (typeof payload === "string") {
      this.rejected[payload] += 1;
      return;
    }
    remote.endpoint = from;
    const isNewer =
      remote.current === undefined ||
      remote.sessions.indexOf(session) > remote.sessions.indexOf(remote.current);
    if (isNewer) this.#startUsing(remote, session);
    if (payload.byteLength === 0) return;
    const received = { from: remote.publicKey, payload: Buffer.from(payload) };
    this.received.push(received);
    if (this.#options.echo) this.send(payload, remote.publicKey);
    this.events.emit("payload", received);
  }

  #startUsing(remote: Remote, session: Session): void {
    remote.current = session;
    remote.handshakes += 1;
    this.events.emit("handshake", remote.publicKey);
  }

  #addSession(remote: Remote, session: Session): void {
    this.#sessions.set(session.index, { session, remote });
    remote.sessions.push(session);
    if (remote.sessions.length > SESSIONS_MAX)
      this.#sessions.delete(remote.sessions.shift()!.index);
  }

  #getOrAddRemote(publicKey: string, endpoint: Endpoint): Remote {
    const known = this.#remotes.get(publicKey);
    if (known) return known;
    const remote: Remote = {
      publicKey,
      endpoint,
      sessions: [],
      current: undefined,
      lastTimestamp: new Uint8Array(),
      handshakes: 0,
    };
    this.#remotes.set(publicKey, remote);
    return remote;
  }

  #getRemote(publicKey?: string): Remote {
    const remote =
      publicKey === undefined ? [...this.#remotes.values()].at(0) : this.#remotes.get(publicKey);
    if (!remote) throw new Error("there is no such remote peer");
    return remote;
  }

  #newIndex(): number {
    return randomInt(2 ** 32);
  }
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
