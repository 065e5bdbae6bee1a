/**
 * `npm run bench [-- NAME... ] [-- --seconds 5 --tunnels 1000]`, with names of `BENCHMARKS`, by default all: measures the
 * whole path under load, compared with other tunnels and lower bounds in the same run; whether response times reveal which
 * accounts exist; whether all counters agree; what attackers do to others; and the agent itself. Absolute figures depend on
 * the machine, ratios hardly do. `npm run bench -- simulation` computes what a large service costs, and measures nothing.
 */
import { parseArgs } from "node:util";
import type { ServerOptions } from "../test/harness/server/server.ts";
import { build } from "../self-host/build/build.ts";
import { benchAbuse } from "./scenarios/abuse.ts";
import { benchAgent } from "./scenarios/agent.ts";
import { benchAgreement, benchShardedAgreement } from "./scenarios/agreement.ts";
import { benchApi } from "./scenarios/api.ts";
import { benchBandwidth } from "./scenarios/bandwidth.ts";
import { benchCaptures } from "./scenarios/captures.ts";
import { benchConnections } from "./scenarios/connections.ts";
import { benchDashboard } from "./scenarios/dashboard.ts";
import { benchEnumeration } from "./scenarios/enumeration.ts";
import { benchGates } from "./scenarios/gates.ts";
import { benchHttps } from "./scenarios/https.ts";
import { benchMany, buildOptionsForMany } from "./scenarios/many.ts";
import { benchRelayTcp } from "./relay/tcp.ts";
import { benchRelayUdp } from "./relay/udp.ts";
import { stopChildren } from "./processes.ts";
import { printRows, saveRows, type Row } from "./report.ts";
import { benchRequests } from "./scenarios/requests.ts";
import type { BenchOptions } from "./settings.ts";
import { startStack, type BenchStack } from "./stack.ts";
import { catchStopSignals, untilAborted } from "./stop-signals.ts";
import { buildSimulationRows } from "./simulation/simulation-rows.ts";
import { benchTails } from "./scenarios/tails.ts";
import { benchTransfers } from "./scenarios/transfers.ts";
import { benchWatching } from "./scenarios/watching.ts";

type Benchmark = (stack: BenchStack, options: BenchOptions) => Promise<Row[]>;

const BENCHMARKS: Record<string, Benchmark> = {
  requests: benchRequests,
  tails: benchTails,
  gates: benchGates,
  captures: benchCaptures,
  transfers: benchTransfers,
  https: benchHttps,
  bandwidth: benchBandwidth,
  api: benchApi,
  many: benchMany,
  connections: benchConnections,
  watching: benchWatching,
  dashboard: benchDashboard,
  enumeration: benchEnumeration,
  agreement: benchAgreement,
  "sharded-agreement": benchShardedAgreement,
  abuse: benchAbuse,
  agent: benchAgent,
  relay: async (_stack, { seconds }) => [
    ...(await benchRelayTcp(seconds)),
    ...(await benchRelayUdp(seconds)),
  ],
};

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: "string", default: "5" },
    tunnels: { type: "string", default: "1000" },
  },
  allowPositionals: true,
});
const options = { seconds: Number(values.seconds), tunnels: Number(values.tunnels) };

/** Settings of the server, where a benchmark needs others than the default ones. */
const SERVER_OPTIONS: Record<string, ServerOptions> = {
  abuse: { env: { AUTH_RATE_LIMIT: "on" } },
  many: buildOptionsForMany(options.tunnels),
};

const names = positionals.length > 0 ? positionals : Object.keys(BENCHMARKS);
// Arithmetic, which needs no server.
if (names.join() === "simulation") {
  printRows(buildSimulationRows());
  process.exit();
}
const signal = catchStopSignals();
// A benchmark that fails or is stopped may leave programs behind.
process.on("exit", () => stopChildren());
await build();
const rows: Row[] = [];
for (const name of names) {
  const benchmark = BENCHMARKS[name];
  if (!benchmark)
    throw new Error(`unknown benchmark ${name}: choose from ${Object.keys(BENCHMARKS).join(", ")}`);
  const stack = await startStack(SERVER_OPTIONS[name]);
  try {
    const measured = await untilAborted(signal, () => benchmark(stack, options));
    printRows(measured);
    rows.push(...measured);
  } finally {
    await stack.stop();
  }
}
console.log(`\nResults written to ${await saveRows(rows)}`);
process.exit();
