/** Asks workerd for an answer that costs it next to nothing, to learn that it has read everything sent before. */
import { connect, type Socket } from "node:net";
import { ResponseReader } from "../http1/response-reader.ts";

const METHOD = "HEAD";
/** No such file exists, so that none is read. */
const REQUEST = `${METHOD} /probe HTTP/1.1\r\nHost: probe\r\n\r\n`;

export class WorkerdProbe {
  readonly #path: string;
  readonly #response = new ResponseReader();
  #socket: Socket | undefined;
  #resolve: (() => void) | undefined;

  /** @param path of the socket on which workerd serves files. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves with the answer, or when the connection is lost or can't be opened. Must not be called again before that. */
  send(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resolve = resolve;
    this.#response.expect(METHOD);
    this.#socket ??= this.#connect();
    this.#socket.write(REQUEST);
    return promise;
  }

  #connect(): Socket {
    const socket = connect(this.#path);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      this.#response.read(bytes);
      if (this.#response.isComplete) this.#resolve?.();
    });
    socket.once("close", () => {
      this.#socket = undefined;
      this.#resolve?.();
    });
    return socket;
  }
}
