/** The local TCP server that an agent forwards to: parsing its address, and connecting to it. */
import type { Socket } from "node:net";
import { ORIGIN_CONNECT_MAX_MS } from "../limits.ts";
import { DATA_CONNECTION_KEEP_ALIVE_MS } from "../../protocol/relay/limits.ts";
import { RESET, type ResetCode } from "../../protocol/wire/frames.ts";
import { connectSocket } from "../../sockets/socket-reader.ts";
import { describeOriginError } from "../origin/origin-error.ts";
import { getLookup } from "../origin/target.ts";

/**
 * How long one of several addresses of a name is tried. When a busy server misses the first SYN, the next one follows after a
 * second (RFC 6298 §2.1).
 */
const ATTEMPT_MAX_MS = 3_500;

export interface TcpTarget {
  /** A name or an address, IPv6 without brackets. */
  host: string;
  port: number;
  /** `localhost:5432`: as it is printed. */
  text: string;
}

/** Accepts `5432`, `host:5432`, `[::1]:5432`, each also after `tcp://`. @returns null for anything else. */
export function parseTcpTarget(text: string): TcpTarget | null {
  const plain = text.trim().replace(/^tcp:\/\//i, "");
  const withHost = /^\d+$/.test(plain) ? `localhost:${plain}` : plain;
  const match = /^(?:\[([0-9a-f:.]+)\]|([^[\]:/?#@\s]+)):(\d{1,5})$/i.exec(withHost);
  if (!match) return null;
  const [, ipv6, name, portText] = match;
  const port = Number(portText);
  if (port < 1 || port > 65_535) return null;
  return { host: ipv6 ?? name!, port, text: withHost };
}

/** Why the connection to the local server could not be opened. */
export interface LocalFailure {
  code: ResetCode;
  message: string;
  /** null when it took too long. */
  error: Error | null;
}

/**
 * Connects to the local server.
 * @param done called once: with null when the paused socket is connected, or with the failure.
 * @returns the socket. The caller may destroy it to cancel; `done` is not called then.
 */
export function connectLocal(
  target: TcpTarget,
  done: (failure: LocalFailure | null) => void,
): Socket {
  const socket = connectSocket({
    host: target.host,
    port: target.port,
    lookup: getLookup(target) as never,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_MAX_MS,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: DATA_CONNECTION_KEEP_ALIVE_MS,
  });
  const timer = setTimeout(() => {
    fail({
      code: RESET.originTimeout,
      message: `${target.text} does not accept the connection in time; check the address and its firewall`,
      error: null,
    });
  }, ORIGIN_CONNECT_MAX_MS);
  const stop = (): void => {
    clearTimeout(timer);
    socket.off("error", failed);
    socket.off("close", stop);
    socket.on("error", () => undefined);
  };
  const fail = (failure: LocalFailure): void => {
    stop();
    socket.destroy();
    done(failure);
  };
  const failed = (error: Error): void => fail(toFailure(error, target));
  socket.once("error", failed);
  socket.once("close", stop);
  socket.once("connect", () => {
    stop();
    done(null);
  });
  return socket;
}

function toFailure(error: Error, target: TcpTarget): LocalFailure {
  return {
    code: RESET.originUnreachable,
    message: describeOriginError(error, { origin: target.text }),
    error,
  };
}
