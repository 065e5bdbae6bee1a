/** A child process of the server: its start and its end. */
import { expect, onTestFinished, test, vi } from "vitest";
import {
  HUNG_CHILD_KILLS_HOURLY_MAX,
  SupervisedProcess,
  type ChildOptions,
} from "../../../self-host/processes/child.ts";
import { HOUR_MS } from "../../../shared/time.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const ignore = (): void => undefined;
const log = { info: ignore, warn: ignore, error: ignore, forward: ignore };

function createChild(
  options: Partial<ChildOptions>,
  error: (line: string) => void = ignore,
): SupervisedProcess {
  return new SupervisedProcess(
    {
      name: "child",
      command: process.execPath,
      args: ["-e", "setInterval(() => undefined, 1_000)"],
      spawnOptions: {},
      probe: () => Promise.resolve(),
      onLine: ignore,
      stopSignal: "SIGKILL",
      stopMaxMs: 1_000,
      signalOnParentExit: "SIGKILL",
      ...options,
    },
    { ...log, error },
  );
}

test("a child that is stopped while its start is being prepared is not started", async () => {
  const preparation = Promise.withResolvers<void>();
  const child = createChild({ prepare: () => preparation.promise });
  const start = child.start();
  await child.stop();
  preparation.resolve();
  try {
    await expect(start).rejects.toThrow("child was stopped before it was started");
    expect(child.pid).toBeUndefined();
  } finally {
    await child.stop();
  }
});

test("a child whose program does not exist is not started", async () => {
  const child = createChild({ command: "/no/such/program" });
  await expect(child.start()).rejects.toThrow("ENOENT");
  await child.stop();
});

test.each([
  ["that says that it is still starting is waited for", "starting", 3],
  ["that does not become ready is stopped", "silent", 1],
])("after a minute, a child %s", async (_, message, probesUntilEnd) => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  let probes = 0;
  const child = createChild({
    probe: () => {
      probes += 1;
      if (probes === 3) return Promise.resolve();
      vi.advanceTimersByTime(HOUR_MS);
      return Promise.reject(new Error(message));
    },
    isStarting: (error) => error instanceof Error && error.message === "starting",
  });
  onTestFinished(() => child.stop());
  const outcome = await child.start().then(
    () => "ready",
    (error: Error) => error.message,
  );
  expect(outcome).toMatch(message === "starting" ? /^ready$/ : /was not ready after 60 s: silent/);
  expect(probes).toBe(probesUntilEnd);
});

test("a child is waited for, also when the clock is set meanwhile", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  let probes = 0;
  const child = createChild({
    probe: () => {
      probes += 1;
      if (probes > 1) return Promise.resolve();
      vi.setSystemTime(Date.now() + 365 * 86_400_000);
      return Promise.reject(new Error("not yet"));
    },
  });
  onTestFinished(() => child.stop());
  await child.start();
  expect(child.pid).toBeDefined();
});

test("a child that hangs is killed and restarted, at most three times an hour", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const pids: number[] = [];
  const errors: string[] = [];
  let pings = 0;
  const child = createChild(
    {
      onSpawn: (pid) => Promise.resolve(void pids.push(pid)),
      // Each process answers once.
      ping: () => {
        pings += 1;
        return pings === pids.length ? Promise.resolve() : new Promise(() => {});
      },
    },
    (line: string) => void errors.push(line),
  );
  await child.start();
  onTestFinished(() => child.stop());
  const hang = async () => {
    await vi.waitUntil(() => pings === pids.length, WAIT_OPTIONS);
    await vi.advanceTimersByTimeAsync(61_000);
  };
  for (let kills = 1; kills <= HUNG_CHILD_KILLS_HOURLY_MAX; kills += 1) {
    await hang();
    await vi.waitUntil(() => child.restarts === kills && pids.length === kills + 1, WAIT_OPTIONS);
  }
  expect(errors.at(-1)).toBe("child was ended by SIGKILL and will be restarted");
  await hang();
  expect(errors.at(-1)).toBe(
    "child hangs: it has not answered for a minute; it is not killed, because that has not helped 3 times within an hour",
  );
  expect([child.hangs, child.pid]).toEqual([4, pids.at(-1)]);
});

test("a child that the system kills is restarted, with a hint at the memory", async () => {
  const errors: string[] = [];
  const child = createChild({}, (line) => void errors.push(line));
  await child.start();
  onTestFinished(() => child.stop());
  process.kill(child.pid!, "SIGKILL");
  await vi.waitUntil(() => child.restarts === 1, WAIT_OPTIONS);
  expect(errors).toEqual([
    "child was ended by SIGKILL, as the system does when memory runs out, and will be restarted",
  ]);
});
