/** One experiment: a system under load, a plan of faults, and checks of what happened. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { untilAborted } from "../bench/stop-signals.ts";
import { createPreparedDir } from "../test/harness/directories.ts";
import { createRandom } from "../test/harness/random.ts";
import { repeatUntilPassed, type CheckResult } from "./checks/check.ts";
import { checkConversations } from "./checks/conversations.ts";
import { checkCounters } from "./checks/counters.ts";
import { checkLoadAfterFaults, checkLoadUnderFaults, listLoadKinds } from "./checks/load-kinds.ts";
import { checkPolicies } from "./checks/policies.ts";
import { checkNoProcessLeft, checkProcesses, countProcesses } from "./checks/processes.ts";
import { checkRecovery } from "./checks/recovery.ts";
import { checkBrokenResponses, checkRequests } from "./checks/requests.ts";
import { checkWrites, readStoredRows } from "./checks/writes.ts";
import { injectFaults } from "./faults/fault-injector.ts";
import { planFaults, type DiskName, type PlannedFault } from "./faults/fault-plan.ts";
import { mountSmallDisk, type SmallDisk } from "./faults/small-disk.ts";
import { History } from "./history.ts";
import { runPolicyWriter, runWriter } from "./load/api-writers.ts";
import { runTcpStreams, runWebSockets } from "./load/conversations.ts";
import type { LoadContext, LoadSize, LoadTargets } from "./load/load.ts";
import { runTransfers, runVisitor } from "./load/visitors.ts";
import { System } from "./system.ts";

const DISK_MIB = { database: 512, objects: 512 };
const RELOADS_MAX = 10;
/** How long each kind of load may take to succeed when the service has recovered: a visitor may still wait for an answer. */
const LOAD_MAX_MS = 60_000;

interface ExperimentOptions {
  seed: number;
  seconds: number;
  /** The longest time between two faults. */
  gapSeconds: number;
  size: LoadSize;
  httpAgents: number;
  hasTcpAgent: boolean;
  /** Mounts small file systems where this user may. */
  hasSmallDisks: boolean;
  /** Default: those of the seed. */
  plan?: PlannedFault[];
  database: "embedded" | "external";
  /** How long the service may take to recover after the last fault. */
  recoveryMaxMs: number;
  /** Ends the experiment early, without checks. */
  signal?: AbortSignal;
  historyPath?: string;
  /** Receives the output of the server. */
  onServerOutput?: (text: string) => void;
  log: (line: string) => void;
}

export interface ExperimentResult {
  history: History;
  checks: CheckResult[];
}

export async function runExperiment(options: ExperimentOptions): Promise<ExperimentResult> {
  const { seed, seconds, gapSeconds, log } = options;
  const plan = options.plan ?? planFaults(createRandom(seed), { seconds, gapSeconds });
  const random = createRandom(seed + 1);
  const history = new History(options.historyPath);
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await createPreparedDir();
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
  const disks = new Map<DiskName, SmallDisk>();
  if (options.hasSmallDisks) await mountDisks(dataDir, disks, cleanup);
  const system = await System.start({ ...options, random, history, dataDir });
  cleanup.defer(() => system.stop());
  const before = await countProcesses(system);

  const ending = new AbortController();
  let ids = 0;
  const context: LoadContext = {
    targets: getLoadTargets(system),
    history,
    random,
    signal: ending.signal,
    nextId: () => `${seed}-${++ids}`,
  };
  const load = startLoad(context, options.size);
  cleanup.defer(() => ending.abort());
  await untilAborted(options.signal, () => injectFaults({ system, disks, history, log }, plan));
  log(`${(history.now() / 1_000).toFixed(1).padStart(6)} s  the last fault has ended`);
  const faultsEndedAtMs = history.now();
  const recovery = await checkRecovery(system, context, options.recoveryMaxMs);
  const recoveredAtMs = history.now();
  const kinds = listLoadKinds(options.size, options.hasTcpAgent);
  const loadAfterFaults = await repeatUntilPassed(LOAD_MAX_MS, () =>
    Promise.resolve([checkLoadAfterFaults(history, kinds, recoveredAtMs)]),
  );
  ending.abort();
  await load;
  // Connections that a fault has frozen would stay open for as long as the proxies run.
  for (const proxy of system.proxies.values()) proxy.reset();

  const checks = [
    ...checkRequests(history),
    ...checkConversations(history),
    checkPolicies(history, system.httpTunnels[0]!),
    await checkStoredWrites(system, history),
    ...(await checkCounters(history, system.owner, getHttpTunnelIds(system))),
    checkLoadUnderFaults(history, kinds, faultsEndedAtMs),
    ...recovery,
    ...loadAfterFaults,
    checkBrokenResponses(history, recoveredAtMs),
    ...(await checkProcesses(system, before)),
  ];
  await system.stop();
  checks.push(...(await checkNoProcessLeft([dataDir, ...system.processMarks])));
  await history.close();
  return { history, checks };
}

function getLoadTargets(system: System): LoadTargets {
  const { proxies, httpTunnels, owner, tunnelIds } = system;
  return {
    visitorPort: proxies.get("visitors")!.port,
    streamPort: proxies.get("streams")?.port,
    hosts: new Map(httpTunnels.map((name) => [name, system.getHost(name)])),
    owner,
    policyTunnelId: tunnelIds.get(httpTunnels[0]!)!,
  };
}

function getHttpTunnelIds({ tunnelIds, httpTunnels }: System): Map<string, string> {
  return new Map(httpTunnels.map((name) => [name, tunnelIds.get(name)!]));
}

async function mountDisks(
  dataDir: string,
  disks: Map<DiskName, SmallDisk>,
  cleanup: AsyncDisposableStack,
): Promise<void> {
  const paths = { database: dataDir, objects: join(dataDir, "objects") } as const;
  for (const name of ["database", "objects"] as const) {
    const disk = await mountSmallDisk(paths[name], DISK_MIB[name]);
    if (!disk) continue;
    disks.set(name, disk);
    cleanup.defer(() => disk.unmount());
  }
}

async function startLoad(context: LoadContext, size: LoadSize): Promise<void> {
  const start = (count: number, run: (context: LoadContext) => Promise<void>) =>
    Array.from({ length: count }, () => run(context));
  await Promise.all([
    ...start(size.visitors, runVisitor),
    ...start(size.transfers, runTransfers),
    ...start(size.webSockets, runWebSockets),
    ...start(size.tcpStreams, runTcpStreams),
    ...start(size.writers, runWriter),
    ...start(Math.min(size.writers, 1), runPolicyWriter),
  ]);
}

async function checkStoredWrites(system: System, history: History): Promise<CheckResult> {
  for (let attempt = 1; attempt <= RELOADS_MAX; attempt += 1) {
    const rows = await readStoredRows(system.owner);
    if (rows) return checkWrites(history, rows);
  }
  return { name: "the API lists what is stored", passed: false, detail: "the API does not answer" };
}
