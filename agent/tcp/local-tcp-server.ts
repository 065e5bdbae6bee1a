/** The local TCP server that a tunnel leads to, and the connections to it. */
import type { Socket } from "node:net";
import { DATA_CONNECTION_KEEP_ALIVE_MS } from "../../protocol/relay/limits.ts";
import { RESET, type ResetCode } from "../../protocol/wire/frames.ts";
import { connectSocket } from "../../sockets/socket-reader.ts";
import { reset } from "../../sockets/splice.ts";
import { ORIGIN_CONNECT_MAX_MS } from "../limits.ts";
import { RestartWait, type Done } from "../local-server/restart-wait.ts";
import { describeNotListening, describeOriginError } from "../origin/origin-error.ts";
import { getLookup } from "../origin/target.ts";
import type { TcpTarget } from "./tcp-target.ts";

/**
 * How long one of several addresses of a name is tried. When a busy server misses the first SYN, the next one follows after a
 * second (RFC 6298 §2.1).
 */
const ATTEMPT_MAX_MS = 3_500;
const TIMEOUT_CODE = "UND_ERR_CONNECT_TIMEOUT";

/** Why the connection to the local server could not be opened. */
interface LocalFailure {
  code: ResetCode;
  message: string;
}

export class LocalTcpServer {
  readonly target: TcpTarget;
  readonly #restart: RestartWait;

  /** @param onListeningChanged called when a server that accepted connections refuses them, and when it accepts them again. */
  constructor(target: TcpTarget, onListeningChanged: (isListening: boolean) => void) {
    this.target = target;
    this.#restart = new RestartWait(onListeningChanged);
  }

  /**
   * Connects, and waits while the server restarts. @param done called once, with a paused socket or with the failure.
   * @returns a function that cancels it; `done` is not called then.
   */
  connect(done: (...result: [null, Socket] | [LocalFailure, null]) => void): () => void {
    let socket: Socket | undefined;
    let isCanceled = false;
    const cancelWait = this.#restart.connect<Socket>(
      (attempted) => void (socket = tryToConnect(this.target, attempted)),
      (...[error, connected]) => {
        if (isCanceled) return;
        if (error) done(toFailure(error, this.target), null);
        else done(null, connected);
      },
    );
    return () => {
      isCanceled = true;
      cancelWait();
      // The local server may have accepted the connection, which this process has not noticed yet.
      if (socket) reset(socket);
    };
  }

  /** Opens and closes a connection. @returns why the server does not accept it, in a sentence; null when it does. */
  findConnectProblem(): Promise<string | null> {
    return new Promise((resolve) => {
      tryToConnect(this.target, (...[error, socket]) => {
        socket?.destroy();
        if (!error) this.#restart.reportAccepted();
        resolve(error && describeNotListening(error, this.target.text));
      });
    });
  }

  /** From now on no connection waits for a server that restarts. */
  endWaits(): void {
    this.#restart.end();
  }
}

/** @returns the socket, which may be reset to cancel. */
function tryToConnect(target: TcpTarget, done: Done<Socket>): Socket {
  const { host, port, socketPath } = target;
  const options = {
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: DATA_CONNECTION_KEEP_ALIVE_MS,
  };
  const address = {
    host,
    port,
    lookup: getLookup(target) as never,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_MAX_MS,
  };
  const socket = connectSocket({
    ...options,
    ...(socketPath === undefined ? address : { path: socketPath }),
  });
  const timer = setTimeout(() => {
    fail(
      Object.assign(new Error("the connection was not accepted in time"), { code: TIMEOUT_CODE }),
    );
  }, ORIGIN_CONNECT_MAX_MS);
  const stop = (): void => {
    clearTimeout(timer);
    socket.off("error", fail);
    socket.off("close", stop);
    socket.on("error", () => undefined);
  };
  const fail = (error: Error): void => {
    stop();
    socket.destroy();
    done(error, null);
  };
  socket.once("error", fail);
  socket.once("close", stop);
  socket.once("connect", () => {
    stop();
    done(null, socket);
  });
  return socket;
}

function toFailure(error: NodeJS.ErrnoException, target: TcpTarget): LocalFailure {
  return {
    code: error.code === TIMEOUT_CODE ? RESET.originTimeout : RESET.originUnreachable,
    message: describeOriginError(error, { origin: target.text }),
  };
}
