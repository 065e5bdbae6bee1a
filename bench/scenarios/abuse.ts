/**
 * A mixed attack while an honest tenant is visited: unknown hosts, slow headers, abandoned requests, visitors that read
 * nothing, a hostile agent, deny-path bombs and a login storm. The honest tenant's latency, the memory and the descriptors
 * of the server are compared with those before.
 */
import { fork, type ChildProcess } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { callApi, mintToken } from "../api.ts";
import type { AttackedTenant, AttackedTenantPlan } from "../abuse/attacked-tenant.ts";
import type { AttackPlan } from "../abuse/attackers.ts";
import type { HonestPlan, HonestResult } from "../abuse/honest-visitors.ts";
import {
  ask,
  BENCH,
  countDescriptors,
  getProcessName,
  getResidentMiB,
  listChildren,
  stopChild,
} from "../processes.ts";
import type { Row } from "../report.ts";
import type { BenchOptions } from "../settings.ts";
import type { BenchStack } from "../stack.ts";
import { round } from "../statistics.ts";

const HONEST_PER_SECOND = 200;
const QUIET_SECONDS = 40;
/** `--seconds` 5, the default of all benchmarks, means two minutes here. */
const ATTACK_SECONDS_PER_SECOND = 24;
const SETTLE_MAX_MS = 30_000;
const DESCRIPTORS_TOLERANCE = 50;

const TARGETS = { p99: 2, memoryMiB: 128 };

export async function benchAbuse(stack: BenchStack, { seconds }: BenchOptions): Promise<Row[]> {
  const { server, host } = stack;
  const attackSeconds = seconds * ATTACK_SECONDS_PER_SECOND;
  const honest: HonestPlan = {
    port: server.port,
    host,
    requestsPerSecond: HONEST_PER_SECOND,
    seconds: QUIET_SECONDS,
  };
  await visitHonestly({ ...honest, seconds: 5 });
  const quiet = await visitHonestly(honest);

  const token = (await mintToken(stack, { tunnelQuota: 10 })).toString("base64");
  const tenant = startInBackground("abuse/attacked-tenant.ts");
  const { tunnelId } = await ask<AttackedTenantPlan, AttackedTenant>(tenant, {
    serverUrl: server.url,
    token,
    subdomain: "abused",
  });
  await callApi(stack, "PUT", `/tunnels/${tunnelId}/policy`, DENY_POLICY);
  const before = await measure(stack);

  const attackers = startInBackground("abuse/attackers.ts");
  const plan: AttackPlan = {
    port: server.port,
    apiHost: `127.0.0.1:${server.port}`,
    token,
    host: `abused.localhost:${server.port}`,
  };
  attackers.send(plan);
  const memory = watchMemory(stack);
  const attacked = await visitHonestly({ ...honest, seconds: attackSeconds });
  const peak = memory.stop();
  await stopChild(attackers);

  const settled = await waitForDescriptors(stack, before.descriptors);
  await stopChild(tenant);

  return [
    describeVisits("quiet", quiet),
    describeVisits("attacked", attacked),
    ...compareWithTargets(attackSeconds, [
      {
        target: `p99 at most ${TARGETS.p99} times the quiet one`,
        measured: `${round(attacked.p99 / quiet.p99, 2)} times`,
        isMet: attacked.p99 <= TARGETS.p99 * quiet.p99,
      },
      {
        target: "no errors",
        measured: String(attacked.errors.length),
        isMet: attacked.errors.length === 0,
      },
      compareMemory(before, peak),
      {
        target: `descriptors within ±${DESCRIPTORS_TOLERANCE} after ${SETTLE_MAX_MS / 1000} s`,
        measured: `${before.descriptors} before, ${settled.descriptors} after ${round(settled.ms / 1000)} s`,
        isMet: Math.abs(settled.descriptors - before.descriptors) <= DESCRIPTORS_TOLERANCE,
      },
    ]),
  ];
}

function describeVisits(phase: string, result: HonestResult): Row {
  const { p50, p99, max, requests, errors } = result;
  return {
    group: "abuse: the honest tenant, 200 req/s, open loop",
    phase,
    "p50 ms": round(p50, 2),
    "p99 ms": round(p99, 2),
    "max ms": round(max, 1),
    requests,
    errors: errors.length,
    reasons: [...new Set(errors)].join(", "),
  };
}

interface Comparison {
  target: string;
  measured: string;
  isMet: boolean;
}

function compareWithTargets(attackSeconds: number, comparisons: Comparison[]): Row[] {
  return comparisons.map(({ isMet, ...comparison }) => ({
    group: `abuse: targets over ${attackSeconds} s`,
    ...comparison,
    verdict: isMet ? "met" : "NOT MET",
  }));
}

function compareMemory(before: Measurement, { peakMiB, peakByProcess }: MemoryPeak): Comparison {
  const grownMiB = peakMiB - before.residentMiB;
  const growth = [...peakByProcess].map(
    ([name, mib]) => `${name} ${round(mib - (before.byProcess.get(name) ?? 0))}`,
  );
  return {
    target: `resident memory grows by at most ${TARGETS.memoryMiB} MiB`,
    measured: `${round(grownMiB)} MiB, from ${round(before.residentMiB)} (at most: ${growth.join(", ")})`,
    isMet: grownMiB <= TARGETS.memoryMiB,
  };
}

const DENY_POLICY = { actions: [{ kind: "deny", path_prefix: "/admin/private" }] };

/**
 * Attackers and the tenant that they attack are on other machines: here they get the processor time that is left. The
 * kernel shares the time between sessions first (sched(7), autogroups), so a session of its own has the low priority.
 */
function startInBackground(path: string): ChildProcess {
  const child = fork(join(BENCH, path), { detached: true });
  const pid = child.pid ?? 0;
  setPriority(pid, constants.priority.PRIORITY_LOW);
  const autogroup = `/proc/${pid}/autogroup`;
  if (existsSync(autogroup)) writeFileSync(autogroup, String(constants.priority.PRIORITY_LOW));
  return child;
}

function visitHonestly(plan: HonestPlan): Promise<HonestResult> {
  return ask<HonestPlan, HonestResult>(fork(join(BENCH, "abuse/honest-visitors.ts")), plan);
}

interface Measurement {
  residentMiB: number;
  byProcess: Map<string, number>;
  descriptors: number;
}

/** Resident memory and descriptors of the server with all its child processes, without PostgreSQL's own. */
async function measure(stack: BenchStack): Promise<Measurement> {
  const server = await stack.server.getPid("server");
  const byProcess = new Map<string, number>();
  let descriptors = 0;
  for (const pid of [server, ...listChildren(server)]) {
    const name = pid === server ? "server" : getProcessName(pid);
    byProcess.set(name, (byProcess.get(name) ?? 0) + getResidentMiB(pid));
    descriptors += countDescriptors(pid);
  }
  const residentMiB = [...byProcess.values()].reduce((sum, mib) => sum + mib, 0);
  return { residentMiB, byProcess, descriptors };
}

interface MemoryPeak {
  peakMiB: number;
  peakByProcess: Map<string, number>;
}

function watchMemory(stack: BenchStack): { stop(): MemoryPeak } {
  let peakMiB = 0;
  const peakByProcess = new Map<string, number>();
  const timer = setInterval(() => {
    void measure(stack).then(({ residentMiB, byProcess }) => {
      peakMiB = Math.max(peakMiB, residentMiB);
      for (const [name, mib] of byProcess) {
        peakByProcess.set(name, Math.max(mib, peakByProcess.get(name) ?? 0));
      }
    });
  }, 500);
  return {
    stop() {
      clearInterval(timer);
      return { peakMiB, peakByProcess };
    },
  };
}

async function waitForDescriptors(stack: BenchStack, before: number) {
  const startedAt = performance.now();
  for (;;) {
    const { descriptors } = await measure(stack);
    const ms = performance.now() - startedAt;
    if (Math.abs(descriptors - before) <= DESCRIPTORS_TOLERANCE || ms > SETTLE_MAX_MS)
      return { descriptors, ms };
    await sleep(500);
  }
}
