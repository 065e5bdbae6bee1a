/** How a command ends that runs until the user stops it. */
import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect, test, vi } from "vitest";
import { runUntilStopped } from "../../../agent/commands/run-until-stopped.ts";
import { watchForStop } from "../../../agent/commands/watch-for-stop.ts";
import type { RejectionError } from "../../../agent/rejection-error.ts";
import { ROOT } from "../../../self-host/build/build.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Calls what the command has added: other listeners of the signal belong to the test runner. */
const interrupt = () => process.listeners("SIGINT").at(-1)?.("SIGINT");

/** Calls it as the screen does when its key was pressed. */
const pressKey = () => (process.listeners("SIGINT").at(-1) as (() => void) | undefined)?.();

/** Runs a command that waits for open requests. */
function runDraining() {
  const drained = Promise.withResolvers<void>();
  const source = { start: () => undefined, close: () => drained.promise, openRequests: 2 };
  const tunnel = Object.assign(new EventEmitter(), source);
  const exitCode = runUntilStopped(tunnel, { end: () => undefined });
  const exit = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
  return { drained, exitCode, exit };
}

test("the copy of a signal that npm sends does not end a command that waits for requests", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.stubEnv("npm_command", "exec");
  const { drained, exitCode, exit } = runDraining();
  interrupt();
  interrupt();
  expect(exit.mock.calls).toEqual([]);
  vi.setSystemTime(Date.now() + 1_000);
  interrupt();
  expect(exit.mock.calls).toEqual([[130]]);
  drained.resolve();
  expect(await exitCode).toBe(0);
});

test("under npm, the key of the screen that is pressed twice at once ends a command that waits for requests", async () => {
  vi.stubEnv("npm_command", "exec");
  const { drained, exitCode, exit } = runDraining();
  pressKey();
  pressKey();
  expect(exit.mock.calls).toEqual([[130]]);
  drained.resolve();
  expect(await exitCode).toBe(0);
});

test("a command says how many requests it waits for, and a second signal ends it at once", async () => {
  vi.stubEnv("npm_command", undefined);
  const drained = Promise.withResolvers<void>();
  const tunnel = Object.assign(new EventEmitter(), {
    start: () => undefined,
    close: () => drained.promise,
    openRequests: 2,
  });
  const counts: number[] = [];
  const stopping = (countOpen: () => number) => void counts.push(countOpen());
  const exitCode = runUntilStopped(tunnel, { stopping, end: () => undefined });
  interrupt();
  expect(counts).toEqual([2]);
  const exit = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
  interrupt();
  expect(exit.mock.calls).toEqual([[130]]);
  drained.resolve();
  expect(await exitCode).toBe(0);
});

test("a command stops once when Ctrl-C ends both it and npx, which started it", async () => {
  vi.stubEnv("npm_command", "exec");
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const drained = Promise.withResolvers<void>();
  const close = vi.fn(() => drained.promise);
  const end = vi.fn<(rejection?: RejectionError) => void>();
  const tunnel = Object.assign(new EventEmitter(), { start: () => undefined, close });
  const exitCode = runUntilStopped(tunnel, { end });
  interrupt();
  vi.spyOn(process, "ppid", "get").mockReturnValue(1);
  vi.advanceTimersByTime(10_000);
  drained.resolve();
  expect(await exitCode).toBe(0);
  expect([close, end].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
});

test("a command that waits for something else than requests, such as a delivery, ends at once at a second signal", () => {
  vi.stubEnv("npm_command", undefined);
  const exit = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
  const stop = vi.fn();
  const endWatch = watchForStop(stop);
  interrupt();
  interrupt();
  endWatch();
  expect(stop).toHaveBeenCalledOnce();
  expect(exit.mock.calls).toEqual([[130]]);
});

test.runIf(process.platform === "linux")(
  "under nohup, which makes the input unreadable, a closed terminal does not stop a command",
  async () => {
    const program = `
      import { watchForStop } from ${JSON.stringify(join(ROOT, "agent/commands/watch-for-stop.ts"))};
      process.on("SIGHUP", () => console.log("hung up"));
      process.on("SIGTERM", () => console.log("terminated"));
      const timer = setInterval(() => undefined, 1_000);
      const endWatch = watchForStop(() => {
        console.log("stopped");
        clearInterval(timer);
        endWatch();
      });
      console.log("ready");`;
    const input = openSync("/dev/null", "w");
    const args = ["--input-type=module-typescript", "--eval", program];
    const child = spawn(process.execPath, args, { stdio: [input, "pipe", "inherit"] });
    closeSync(input);
    const lines: string[] = [];
    const signals = { ready: "SIGHUP", "hung up": "SIGTERM" } as const;
    for await (const line of createInterface(child.stdout!)) {
      lines.push(line);
      if (line === "ready" || line === "hung up") child.kill(signals[line]);
    }
    expect(lines).toEqual(["ready", "hung up", "terminated", "stopped"]);
  },
);
