/**
 * `npm run chaos [-- --seconds 600 --seed 1 --history FILE --server-log FILE]`: faults of every kind under load, chosen by the seed, and
 * checks of what happened. `npm run chaos -- --upgrade-from DIR`: an upgrade of an older checkout's server under load.
 * The exit code is 1 when a check fails.
 */
import { appendFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { build } from "../self-host/build/build.ts";
import { runExperiment } from "./experiment.ts";
import { formatReport } from "./report.ts";

const DEFAULT_SECONDS = 600;
const GAP_SECONDS = 6;
const SIZE = { visitors: 4, transfers: 2, webSockets: 2, tcpStreams: 2, writers: 2 };

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: String(DEFAULT_SECONDS) },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    history: { type: "string" },
    "server-log": { type: "string" },
  },
});
const serverLog = values["server-log"];
const seed = Number(values.seed);
const seconds = Number(values.seconds);
const log = (line: string) => console.log(line);

// A signal that ends this program must also end what it has started.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
await build();
// A server has its database inside or elsewhere: each of two seeds tests one of them.
const database = seed % 2 === 0 ? "embedded" : "external";
log(`seed ${seed}, ${seconds} seconds, ${database} database`);
const { history, checks } = await runExperiment({
  seed,
  seconds,
  gapSeconds: GAP_SECONDS,
  size: SIZE,
  httpAgents: 3,
  hasTcpAgent: true,
  hasSmallDisks: true,
  database,
  ...(values.history !== undefined && { historyPath: values.history }),
  ...(serverLog !== undefined && { onServerOutput: (text) => appendFileSync(serverLog, text) }),
  log,
});
for (const line of formatReport(history, checks)) log(line);
process.exit(checks.every(({ passed }) => passed) ? 0 : 1);
