/** The clock that tests of programs with long intervals speed up. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { fastClock, fastTimers, speedUp } from "../../harness/preloads/fast-clock.ts";
import { NODE_ENVIRONMENT } from "../../harness/node-environment.ts";

const SPEED = 200;

/** Runs a module that prints "ready" first, speeds up its clock then, and returns what it prints afterwards. */
async function runFast(source: string): Promise<string> {
  const args = ["--input-type=module", "--eval", `console.log("ready");${source}`];
  const child: ChildProcess = spawn(process.execPath, args, {
    env: { ...NODE_ENVIRONMENT, ...fastClock(SPEED) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout!, "data");
  const output = text(child.stdout!);
  speedUp(child);
  return output;
}

test.each([
  ["a timeout", `setTimeout((text) => console.log(text), 60_000, "done")`],
  [
    "an interval",
    `let n = 0; const timer = setInterval(() => {
       if ((n += 1) < 3) return;
       clearInterval(timer);
       console.log("done");
     }, 20_000)`,
  ],
  [
    "a delay",
    `import { setTimeout as delay } from "node:timers/promises";
     console.log(await delay(60_000, "done"))`,
  ],
  [
    "a timeout of a signal",
    `const wait = setTimeout(() => {}, 3600_000);
     AbortSignal.timeout(60_000).onabort = ({ target }) => {
       clearTimeout(wait);
       console.log(target.reason.name === "TimeoutError" ? "done" : target.reason);
     }`,
  ],
  [
    "dates, and the clock for durations",
    `const starts = [Date.now(), +new Date(), performance.now()];
     // A timer of Node.js may fire a millisecond early, which is 200 of these.
     setTimeout(() => {
       const passed = [Date.now(), +new Date(), performance.now()].map((ms, at) => ms - starts[at]);
       console.log(passed.every((ms) => ms > 59_000) ? "done" : passed.join());
     }, 60_000)`,
  ],
])("%s of a minute passes within a second after the clock was sped up", async (_, source) => {
  expect(await runFast(source)).toBe("done\n");
});

test("a delay ends by its signal, a cleared timer does not fire, and unreferenced ones let the program end", async () => {
  const output = await runFast(`
    import { setTimeout as delay } from "node:timers/promises";
    const cleared = setTimeout(() => console.log("not cleared"), 1_000);
    clearTimeout(cleared);
    setTimeout(() => console.log("not ended"), 3600_000).unref();
    await delay(3600_000, null, { signal: AbortSignal.timeout(1_000) }).catch(({ name }) => console.log(name));
  `);
  expect(output).toBe("TimeoutError\n");
});

test("fast timers run fast from the start, and dates as usual", async () => {
  const source = `const [date, passed] = [Date.now(), performance.now()];
    setTimeout(() => {
      const times = [Date.now() - date, performance.now() - passed];
      console.log(times.every((ms) => ms < 30_000) ? "done" : times.join());
    }, 60_000);`;
  const child = spawn(process.execPath, ["--eval", source], {
    env: { ...NODE_ENVIRONMENT, ...fastTimers(SPEED) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  expect(await text(child.stdout)).toBe("done\n");
});
