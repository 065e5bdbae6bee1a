/** An Express app that gives itself a public URL when it starts with UNDERPASS=1. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import { expose, type ExposedTunnel } from "underpass";

const app = express();
// The tunnel says in X-Forwarded-For, -Proto and -Host who visits which address. It connects from this machine.
app.set("trust proxy", "loopback");

app.get("/", (request, response) => {
  response.send(`You opened ${request.protocol}://${request.host} from ${request.ip}\n`);
});

const server = app.listen(Number(process.env.PORT ?? 3000));
await once(server, "listening");
const { port } = server.address() as AddressInfo;
console.log(`Local:  http://localhost:${port}`);

let tunnel: ExposedTunnel | undefined;
if (process.env.UNDERPASS) {
  tunnel = await expose({ port });
  console.log(`Public: ${tunnel.url}`);
}

async function stop(): Promise<void> {
  // The tunnel first: requests of visitors finish before the server closes.
  await tunnel?.close();
  server.close();
}
process.once("SIGINT", () => void stop());
process.once("SIGTERM", () => void stop());
