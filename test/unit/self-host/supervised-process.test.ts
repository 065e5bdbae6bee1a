/** A child process of the server: its start and its end. */
import { expect, test } from "vitest";
import { SupervisedProcess, type ChildOptions } from "../../../self-host/processes/child.ts";

const ignore = (): void => undefined;
const log = { info: ignore, warn: ignore, error: ignore, forward: ignore };

function createChild(options: Partial<ChildOptions>): SupervisedProcess {
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
    log,
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
