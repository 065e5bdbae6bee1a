/**
 * Frames that the gateway can't accept (RFC 6455 §7.1.7), as any website can send them to it while `npm run dev` runs: there
 * the gateway listens on a port.
 */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import { neonConfig, Pool } from "@neondatabase/serverless";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { formatApplicationName } from "../../../protocol/application-name.ts";
import {
  GATEWAY_SESSION_CONNECTIONS,
  type Gateway,
  startGateway,
} from "../../../self-host/gateway/gateway.ts";
import { type EmbeddedPostgres, startPostgres } from "../../../self-host/postgres/postgres.ts";
import { waitForClose } from "../../../sockets/close-event.ts";
import { createTemporaryDir, silentLog } from "../../harness/directories.ts";
import {
  buildFrame,
  type FrameToSend,
  OPCODE,
  RawWebSocket,
} from "../../harness/tunnel/raw-websocket.ts";

const TOO_LARGE_BYTES = 10 * 1024 * 1024 + 1;
const RESERVED: FrameToSend = { opcode: 3 };

let dir: string;
let postgres: EmbeddedPostgres;
let gateway: Gateway;
beforeAll(async () => {
  dir = await createTemporaryDir();
  postgres = await startPostgres(dir, "a password", silentLog);
  gateway = await startGateway({
    socketPath: undefined,
    databaseUrl: postgres.url,
    secret: "right",
    mailDir: join(dir, "mail"),
    smtpServer: undefined,
    log: silentLog,
  });
  neonConfig.wsProxy = () => `${gateway.address}/v2`;
  neonConfig.useSecureWebSocket = false;
  neonConfig.webSocketConstructor = WebSocket;
}, 60_000);
afterAll(async () => {
  await gateway.close();
  await postgres.stop();
  await rm(dir, { recursive: true });
});

/** Node.js ends a program that has one. */
const unhandled: unknown[] = [];
const record = (error: unknown) => void unhandled.push(error);
beforeEach(() => process.on("unhandledRejection", record));
afterEach(() => {
  process.off("unhandledRejection", record);
  unhandled.length = 0;
});

/** @param caller an organization, whose transactions take turns; undefined for the server's own work. */
async function openSession(caller?: string) {
  const name = caller === undefined ? "" : `?application_name=${formatApplicationName(caller)}`;
  const pool = new Pool({ connectionString: `${gateway.databaseUrl}${name}` });
  pool.on("error", () => undefined);
  const client = await pool.connect();
  client.on("error", () => undefined);
  const { stream } = (client as unknown as { connection: { stream: { ws: WebSocket } } })
    .connection;
  return { client, webSocket: stream.ws };
}

test.each([
  ["with a reserved opcode", RESERVED, 1002],
  [
    "of more than ten megabytes",
    { opcode: OPCODE.binary, payload: Buffer.alloc(TOO_LARGE_BYTES) },
    1009,
  ],
])(
  "a frame %s, before the secret was asked for, ends only its own connection",
  async (_name, frame, code) => {
    const port = Number(gateway.address.split(":")[1]);
    const stranger = await RawWebSocket.open({ port, host: gateway.address, path: "/v2" });
    stranger.send(frame);
    expect((await stranger.next())?.payload.readUInt16BE()).toBe(code);
    const closed = waitForClose(stranger.socket);
    stranger.socket.end();
    await closed;
    const { client, webSocket } = await openSession();
    expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    webSocket.terminate();
    expect(unhandled).toEqual([]);
  },
);

test.each([
  ["an organization", crypto.randomUUID()],
  ["the server itself", undefined],
])(
  "an invalid frame during a transaction of %s rolls it back, and returns its connection",
  async (_of, caller) => {
    for (let i = 0; i < GATEWAY_SESSION_CONNECTIONS; i += 1) {
      const { client, webSocket } = await openSession(caller);
      await client.query("begin");
      await client.query("create table incomplete (id int)");
      const closed = once(webSocket, "close");
      const { _socket: socket } = webSocket as unknown as { _socket: Socket };
      socket.write(buildFrame(RESERVED));
      expect((await closed)[0]).toBe(1002);
    }
    const { client, webSocket } = await openSession(caller);
    const { rows } = await client.query("select to_regclass('incomplete') as found");
    expect(rows).toEqual([{ found: null }]);
    webSocket.terminate();
    expect(unhandled).toEqual([]);
  },
);
