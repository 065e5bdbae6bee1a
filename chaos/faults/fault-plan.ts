/** Which faults a seed means, and when. The same seed and duration always give the same plan. */
import type { Random } from "../../test/harness/random.ts";
import { GOOD_NETWORK, type NetworkConditions } from "./fault-proxy.ts";

/** The server's own process contains the gateway to PostgreSQL, and supervises the others. */
export const PROCESSES = [
  "workerd",
  "postgres",
  "server",
  "front-proxy",
  "relay",
  "http-agent",
  "tcp-agent",
] as const;
export type ProcessName = (typeof PROCESSES)[number];

/** Where a fault proxy stands: in front of the server for agents and for visitors, and so on. */
export const PATHS = ["agents", "visitors", "relay", "streams", "database"] as const;
export type PathName = (typeof PATHS)[number];

export const DISKS = ["objects", "database"] as const;
export type DiskName = (typeof DISKS)[number];

export type Fault =
  | { kind: "kill"; process: ProcessName }
  | { kind: "pause"; process: "postgres"; seconds: number }
  | { kind: "fill-disk"; disk: DiskName; seconds: number }
  /** The wall clock of the agents, or of the server's Node.js processes. */
  | { kind: "set-clock"; programs: "agents" | "server"; minutes: number }
  | { kind: "network"; path: PathName; conditions: NetworkConditions; seconds: number }
  | { kind: "freeze"; path: PathName }
  | { kind: "reset"; path: PathName };

export interface PlannedFault {
  /** Since the load began. */
  atSeconds: number;
  fault: Fault;
}

const CONDITIONS: NetworkConditions[] = [
  { ...GOOD_NETWORK, latencyMs: 80, jitterMs: 120 },
  { ...GOOD_NETWORK, sliceBytes: 7 },
  { ...GOOD_NETWORK, stallPercent: 5, resetPerMille: 5 },
  { ...GOOD_NETWORK, bytesPerSecond: 200_000 },
  { ...GOOD_NETWORK, latencyMs: 30, jitterMs: 30, stallPercent: 1, resetPerMille: 10 },
];
const CLOCK_STEPS_MINUTES = [10, -10];
const DISK_FULL_SECONDS = 5;
const POSTGRES_PAUSE_SECONDS = 10;
const NETWORK_SECONDS_MIN = 3;
const NETWORK_SECONDS_MAX = 10;
/** The first fault meets a server under load. */
const FIRST_FAULT_SECONDS = 2;

/** Every kind of fault once, with the kills, which do most harm, for every process. */
function createDeck(random: Random): Fault[] {
  const seconds = () =>
    NETWORK_SECONDS_MIN + random.below(NETWORK_SECONDS_MAX - NETWORK_SECONDS_MIN + 1);
  const deck: Fault[] = [
    ...PROCESSES.map((process) => ({ kind: "kill", process }) as const),
    { kind: "pause", process: "postgres", seconds: POSTGRES_PAUSE_SECONDS },
    ...DISKS.map((disk) => ({ kind: "fill-disk", disk, seconds: DISK_FULL_SECONDS }) as const),
    { kind: "set-clock", programs: "agents", minutes: random.pick(CLOCK_STEPS_MINUTES) },
    { kind: "set-clock", programs: "server", minutes: random.pick(CLOCK_STEPS_MINUTES) },
    ...PATHS.flatMap((path): Fault[] => [
      { kind: "network", path, conditions: random.pick(CONDITIONS), seconds: seconds() },
      { kind: "freeze", path },
      { kind: "reset", path },
    ]),
  ];
  return shuffle(random, deck);
}

/** @param gapSeconds the longest time between two faults. They overlap when it is shorter than they last. */
export function planFaults(
  random: Random,
  { seconds, gapSeconds }: { seconds: number; gapSeconds: number },
): PlannedFault[] {
  const plan: PlannedFault[] = [];
  let deck: Fault[] = [];
  for (let at = FIRST_FAULT_SECONDS; at < seconds; at += 1 + random.below(gapSeconds)) {
    if (deck.length === 0) deck = createDeck(random);
    const fault = deck.pop()!;
    const duration = "seconds" in fault ? fault.seconds : 0;
    if (at + duration <= seconds) plan.push({ atSeconds: at, fault });
  }
  return plan;
}

function shuffle<Item>(random: Random, items: Item[]): Item[] {
  for (let last = items.length - 1; last > 0; last -= 1) {
    const other = random.below(last + 1);
    [items[last], items[other]] = [items[other]!, items[last]!];
  }
  return items;
}

/** One line of the report. */
export function describeFault(fault: Fault): string {
  switch (fault.kind) {
    case "kill":
      return `kill -9 of ${fault.process}`;
    case "pause":
      return `SIGSTOP of ${fault.process} for ${fault.seconds} s`;
    case "fill-disk":
      return `the disk of ${fault.disk} is full for ${fault.seconds} s`;
    case "set-clock":
      return `the clock of the ${fault.programs} is set ${fault.minutes > 0 ? "forward" : "back"} by ${Math.abs(fault.minutes)} minutes`;
    case "network":
      return `${fault.path}: ${describeConditions(fault.conditions)} for ${fault.seconds} s`;
    case "freeze":
      return `${fault.path}: open connections become half-open`;
    case "reset":
      return `${fault.path}: open connections are reset`;
  }
}

function describeConditions(conditions: NetworkConditions): string {
  const { latencyMs, jitterMs, sliceBytes, bytesPerSecond, stallPercent, resetPerMille } =
    conditions;
  const texts = [
    latencyMs > 0 && `latency ${latencyMs} to ${latencyMs + jitterMs} ms`,
    sliceBytes > 0 && `${sliceBytes} bytes at a time`,
    bytesPerSecond > 0 && `${bytesPerSecond / 1_000} kB/s`,
    stallPercent > 0 && `${stallPercent} % of the parts stall`,
    resetPerMille > 0 && `${resetPerMille / 10} % of the parts reset the connection`,
  ];
  return texts.filter((text) => text !== false).join(", ");
}
