/**
 * `npm run chaos [-- --seconds 600 --seed 1 --history FILE --server-log FILE]`: faults of every kind under load, chosen by
 * the seed, and checks of what happened. `npm run chaos -- --upgrade-from DIR`: an upgrade of an older checkout's server under load.
 * The exit code is 1 when a check fails.
 */
import { appendFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { catchStopSignals } from "../bench/stop-signals.ts";
import { build } from "../self-host/build/build.ts";
import { runExperiment, type ExperimentResult } from "./experiment.ts";
import { runUpgrade } from "./upgrade.ts";
import { formatReport } from "./report.ts";

const DEFAULT_SECONDS = 600;
const GAP_SECONDS = 6;
const RECOVERY_MAX_MS = 30_000;
const SIZE = { visitors: 4, transfers: 2, webSockets: 2, tcpStreams: 2, writers: 2 };

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: String(DEFAULT_SECONDS) },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    history: { type: "string" },
    "server-log": { type: "string" },
    "upgrade-from": { type: "string" },
  },
});
const serverLog = values["server-log"];
const seed = Number(values.seed);
const seconds = Number(values.seconds);
const log = (line: string) => console.log(line);

const result = await run();
if (!result) process.exit(0);
for (const line of formatReport(result.history, result.checks)) log(line);
process.exit(result.checks.every(({ passed }) => passed) ? 0 : 1);

/** @returns undefined when the experiment can't be made here. */
async function run(): Promise<ExperimentResult | undefined> {
  await build();
  const checkout = values["upgrade-from"];
  const signal = catchStopSignals();
  if (checkout !== undefined) return runUpgrade(resolve(checkout), log, signal);
  // A server has its database inside or elsewhere: each of two seeds tests one of them.
  const database = seed % 2 === 0 ? "embedded" : "external";
  log(`seed ${seed}, ${seconds} seconds, ${database} database`);
  return runExperiment({
    seed,
    seconds,
    gapSeconds: GAP_SECONDS,
    size: SIZE,
    httpAgents: 3,
    hasTcpAgent: true,
    hasSmallDisks: true,
    database,
    recoveryMaxMs: RECOVERY_MAX_MS,
    signal,
    ...(values.history !== undefined && { historyPath: values.history }),
    ...(serverLog !== undefined && {
      onServerOutput: (text: string) => appendFileSync(serverLog, text),
    }),
    log,
  });
}
