/** An HTTP proxy (CONNECT, RFC 9110 §9.3.6) that records who asked for which server, like that of a company. */
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { connect, type AddressInfo, type Socket } from "node:net";
import type { Certificate } from "./certificate.ts";

interface ConnectProxyOptions {
  /** It is reached over TLS with this certificate. */
  certificate?: Certificate;
  /** What it answers to every CONNECT: `403 Forbidden`. */
  refusal?: string;
  /** What it answers when the connection is open. Default: `200 OK`. */
  success?: string;
  /** `user:password`, without which it answers 407. */
  credentials?: string;
}

export interface ConnectProxy extends AsyncDisposable {
  url: string;
  port: number;
  /** The `host:port` of each CONNECT, and its credentials. */
  targets: string[];
  credentials: (string | undefined)[];
}

/** Every host name leads to 127.0.0.1. */
export async function startConnectProxy(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
  const { certificate } = options;
  const targets: string[] = [];
  const credentials: (string | undefined)[] = [];
  const sockets = new Set<Socket>();
  const proxy = certificate ? createHttpsServer(certificate) : createHttpServer();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => undefined);
  };
  proxy.on("connection", keep);
  proxy.on("connect", ({ url = "", headers }, near: Socket) => {
    keep(near);
    targets.push(url);
    const shown = decodeBasic(headers["proxy-authorization"]);
    credentials.push(shown);
    const isDenied = options.credentials !== undefined && shown !== options.credentials;
    const refusal = isDenied ? "407 Proxy Authentication Required" : options.refusal;
    if (refusal !== undefined) return void near.end(`HTTP/1.1 ${refusal}\r\n\r\n`);
    const far = connect({
      host: "127.0.0.1",
      port: Number(url.split(":").at(-1)),
      allowHalfOpen: true,
    });
    keep(far);
    far.once("connect", () => {
      near.write(`HTTP/1.1 ${options.success ?? "200 OK"}\r\n\r\n`);
      near.pipe(far).pipe(near);
    });
    far.once("error", () => near.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  return {
    url: `${certificate ? "https" : "http"}://127.0.0.1:${port}`,
    port,
    targets,
    credentials,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, "close");
    },
  };
}

function decodeBasic(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  return Buffer.from(header.replace(/^Basic /, ""), "base64").toString();
}
