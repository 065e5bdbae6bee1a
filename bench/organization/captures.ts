/** Captured requests of many tunnels, recorded as the tunnels' objects always do: by visits. */
import { expose, type ExposedTunnel } from "../../agent/expose.ts";
import { mintToken } from "../api.ts";
import { runLoad } from "../processes.ts";
import { CONNECTIONS } from "../settings.ts";
import type { BenchStack } from "../stack.ts";

const CAPTURES = 100_000;
const TUNNELS = 10;
const ROUND_SECONDS = 2;

/** Visits the tunnels in turns until all of them together have captured as many requests. @returns the tunnels. */
export async function recordCaptures(stack: BenchStack): Promise<ExposedTunnel[]> {
  const token = await mintToken(stack, { tunnelQuota: TUNNELS });
  const options = { server: stack.server.url, origin: `127.0.0.1:${stack.origin.port}`, token };
  const tunnels = await Promise.all(Array.from({ length: TUNNELS }, () => expose(options)));
  const { port } = stack.server;
  let captures = 0;
  for (let i = 0; captures < CAPTURES; i++) {
    const { host } = new URL(tunnels[i % TUNNELS]!.url);
    const plan = { port, host, path: "/", connections: CONNECTIONS, seconds: ROUND_SECONDS };
    const { requestsPerSecond, errors } = await runLoad({ ...plan, warmUpSeconds: 0 });
    if (errors > 0) throw new Error(`${errors} visits of ${host} failed`);
    captures += requestsPerSecond * ROUND_SECONDS;
  }
  return tunnels;
}
