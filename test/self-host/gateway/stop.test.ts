/** A stop of the gateway, after which PostgreSQL is stopped too. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo } from "node:net";
import { neon, neonConfig } from "@neondatabase/serverless";
import { expect, test } from "vitest";
import { startGateway } from "../../../self-host/gateway/gateway.ts";
import { startPostgres } from "../../../self-host/postgres/postgres.ts";
import { createTemporaryDir, silentLog } from "../../harness/directories.ts";

/** The first byte of the message with which a client leaves (PostgreSQL's protocol, "Terminate"). */
const TERMINATE = 0x58;

/** Passes everything on except that clients leave, as if that were late. */
async function startSlowProxy(port: number) {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const postgres = connect(port, "127.0.0.1");
    client.on("data", (bytes) => {
      if (bytes[0] !== TERMINATE) postgres.write(bytes);
    });
    postgres.pipe(client);
    for (const socket of [client, postgres]) socket.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

test("logs nothing when PostgreSQL ends the connections that are still open", async () => {
  const dir = await createTemporaryDir();
  const postgres = await startPostgres(dir, "a password", silentLog);
  const url = new URL(postgres.url);
  const proxy = await startSlowProxy(Number(url.port));
  url.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const warnings: string[] = [];
  const gateway = await startGateway({
    socketPath: undefined,
    databaseUrl: url.href,
    secret: "right",
    mailDir: dir,
    smtpServer: undefined,
    log: { ...silentLog, warn: (message) => void warnings.push(message) },
  });
  neonConfig.fetchEndpoint = () => `http://${gateway.address}/sql`;
  expect(await neon(gateway.databaseUrl)`select 1 as one`).toEqual([{ one: 1 }]);
  await gateway.close();
  await postgres.stop();
  proxy.close();
  await once(proxy, "close");
  expect(warnings).toEqual([]);
  await rm(dir, { recursive: true });
});
