/** Logins at full speed, and the visitors of a tunnel meanwhile. */
import { callApi } from "../api.ts";
import { runLoad } from "../processes.ts";
import type { Row } from "../report.ts";
import { CONNECTIONS, ROUNDS, WARM_UP_SECONDS } from "../settings.ts";
import { median, round } from "../statistics.ts";
import type { BenchStack } from "../stack.ts";

/** Clients that log in without a pause. */
const CLIENTS = 8;
/** Visits are due at this rate, whatever the server does. */
const VISITS_PER_SECOND = 200;

export async function measureLoginStorm(stack: BenchStack, seconds: number): Promise<Row[]> {
  const quiet: number[] = [];
  const during: number[] = [];
  const logins: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    quiet.push(await visit(stack, seconds));
    const storm = startStorm(stack);
    during.push(await visit(stack, seconds));
    logins.push(await storm.stop());
  }
  return [
    {
      group: "visitors while others log in",
      "visits/s": VISITS_PER_SECOND,
      "logins/s": round(median(logins), 1),
      "p99 quiet ms": round(median(quiet), 1),
      "p99 storm ms": round(median(during), 1),
      ratio: round(median(during) / median(quiet), 2),
    },
  ];
}

/** @returns the 99th percentile of the visits' response times, in milliseconds. */
async function visit({ server, host }: BenchStack, seconds: number): Promise<number> {
  const plan = { port: server.port, host, path: "/", connections: CONNECTIONS, seconds };
  const paced = { requestsPerSecond: VISITS_PER_SECOND, warmUpSeconds: WARM_UP_SECONDS };
  return (await runLoad({ ...plan, ...paced })).p99;
}

/** `stop` resolves with the number of logins a second. */
function startStorm(stack: BenchStack): { stop(): Promise<number> } {
  const { email, password } = stack;
  let isStopped = false;
  let logins = 0;
  const startedAt = performance.now();
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (!isStopped) {
      await callApi(stack, "POST", "/auth/login", { email, password });
      logins += 1;
    }
  });
  return {
    async stop() {
      isStopped = true;
      await Promise.all(clients);
      return (logins * 1000) / (performance.now() - startedAt);
    },
  };
}
