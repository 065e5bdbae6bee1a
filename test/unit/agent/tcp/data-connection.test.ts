/** An agent's data connection to a relay: plain, over TLS and through a proxy; and to servers that are not relays. */
import { once } from "node:events";
import { createServer as createHttp, type Server } from "node:http";
import { createServer as createHttps } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { TrustedAuthorities } from "../../../../agent/outgoing/trusted-authorities.ts";
import { DataConnection } from "../../../../agent/tcp/data-connection.ts";
import type { VisitorHead } from "../../../../protocol/relay/control.ts";
import { setReceiver } from "../../../../sockets/socket-reader.ts";
import { createCertificate } from "../../../harness/fakes/certificate.ts";
import { startConnectProxy } from "../../../harness/fakes/connect-proxy.ts";

const HEAD: VisitorHead = {
  address: "203.0.113.7",
  port: 40_000,
  localAddress: "198.51.100.1",
  localPort: 5432,
};
const NOT_A_RELAY = "the server at the relay's address is not an Underpass relay";
const UPGRADED =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: underpass-stream.v1\r\n\r\n";

const certificate = createCertificate();
const authorities = new TrustedAuthorities([certificate.cert]);
const servers: Server[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function listen<Kind extends Server>(server: Kind): Promise<number> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function headBytes(head: object): Buffer {
  const json = Buffer.from(JSON.stringify(head));
  return Buffer.concat([Buffer.from([json.length >> 8, json.length & 0xff]), json]);
}

type UpgradeHandler = (socket: Socket, authorization: string | undefined) => void;

/** Starts a relay that handles data connections with `upgraded`. */
function startRelay(scheme: "ws" | "wss", onUpgrade: UpgradeHandler): Promise<string> {
  const server = scheme === "wss" ? createHttps(certificate) : createHttp();
  server.on("upgrade", (request, socket) => {
    socket.on("error", () => undefined);
    onUpgrade(socket as Socket, request.headers.authorization);
  });
  return listen(server as Server).then((port) => `${scheme}://127.0.0.1:${port}`);
}

interface Outcome {
  idle: boolean;
  head?: VisitorHead;
  socket?: Socket;
  received?: string;
  failure?: string;
}

/** Resolves when the data connection fails, or when it has received a visitor's bytes up to a full stop. */
function open(url: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const outcome: Outcome = { idle: false };
    new DataConnection(
      { url, authorities, association: 7, streamKey: "key" },
      {
        onIdle: () => (outcome.idle = true),
        onFailed: (failure) => resolve({ ...outcome, failure }),
        onAssigned(head, socket, unread) {
          let received = Buffer.from(unread).toString();
          const take = (more: string): void => {
            received += more;
            if (received.endsWith(".")) resolve({ ...outcome, head, socket, received });
          };
          setReceiver(socket, (bytes) => {
            take(Buffer.from(bytes).toString());
            return true;
          });
          take("");
          socket.resume();
        },
      },
    );
  });
}

test.each(["ws", "wss"] as const)(
  "over %s it waits for a visitor, and receives the visitor's bytes",
  async (scheme) => {
    let shown: string | undefined;
    const url = await startRelay(scheme, (socket, authorization) => {
      shown = authorization;
      socket.write(UPGRADED);
      socket.write(headBytes(HEAD));
      setImmediate(() => socket.write("first bytes."));
    });
    const { idle, head, socket, received } = await open(url);
    expect({ idle, head, received, shown }).toEqual({
      idle: true,
      head: HEAD,
      received: "first bytes.",
      shown: "Bearer 7.key",
    });
    socket?.destroy();
  },
);

test.each(["ws", "wss"] as const)(
  "over %s it uses the proxy of the environment",
  async (scheme) => {
    await using proxy = await startConnectProxy();
    vi.stubEnv("http_proxy", proxy.url);
    vi.stubEnv("https_proxy", proxy.url);
    vi.stubEnv("no_proxy", "");
    const url = await startRelay(scheme, (socket) => {
      socket.write(UPGRADED);
      socket.write(headBytes(HEAD));
      setImmediate(() => socket.write("through."));
    });
    const { head, socket, received } = await open(url);
    expect({ head, received }).toEqual({ head: HEAD, received: "through." });
    expect(proxy.targets).toEqual([new URL(url).host]);
    socket?.destroy();
  },
);

test("the response, the head and the visitor's bytes may arrive in any pieces", async () => {
  const bytes = Buffer.concat([Buffer.from(UPGRADED), headBytes(HEAD), Buffer.from("in pieces.")]);
  const url = await startRelay("ws", (socket) => {
    socket.setNoDelay(true);
    void (async () => {
      for (const byte of bytes) {
        socket.write(Buffer.from([byte]));
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
  });
  const { head, socket, received } = await open(url);
  expect({ head, received }).toEqual({ head: HEAD, received: "in pieces." });
  socket?.destroy();
});

test("bytes that arrive with the head are passed on", async () => {
  const url = await startRelay("ws", (socket) => {
    socket.write(Buffer.concat([Buffer.from(UPGRADED), headBytes(HEAD), Buffer.from("at once.")]));
  });
  const { received, socket } = await open(url);
  expect(received).toBe("at once.");
  socket?.destroy();
});

test.each([
  ["refuses", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "the relay answered 401"],
  ["speaks another protocol", "SSH-2.0-OpenSSH_9.6\r\n\r\n", NOT_A_RELAY],
  ["never ends its response", `HTTP/1.1 101 OK\r\n${"x".repeat(9_000)}`, NOT_A_RELAY],
  ["sends an invalid head", `${UPGRADED}\u0000\u0002{}`, NOT_A_RELAY],
  ["sends a head that is too long", `${UPGRADED}\u007f\u007f`, NOT_A_RELAY],
])("a server that %s is given up", async (_name, answer, failure) => {
  const url = await startRelay("ws", (socket) => socket.write(answer));
  expect((await open(url)).failure).toBe(failure);
});

test("a relay's close of an idle connection is reported", async () => {
  const url = await startRelay("ws", (socket) => {
    socket.write(UPGRADED);
    setImmediate(() => socket.end());
  });
  expect(await open(url)).toMatchObject({ idle: true, failure: "the relay closed the connection" });
});
