/**
 * Loaded before a program that a test starts (`--import`). On SIGUSR2 the program's clock begins to run `CLOCK_SPEED`
 * times as fast: its dates, its timers and those it has already set. With `CLOCK_TIMERS_ONLY`, timers run fast from the
 * start, and dates as usual. Node.js itself and child processes are not affected.
 */
import { syncBuiltinESMExports } from "node:module";
import promises from "node:timers/promises";

const SPEED = Number(process.env.CLOCK_SPEED);
const ARE_DATES_FAST = process.env.CLOCK_TIMERS_ONLY === undefined;
const RealDate = Date;
const realTimers = { setTimeout, clearTimeout };
const realNow = performance.now.bind(performance);
let speed = ARE_DATES_FAST ? 1 : SPEED;
let spedUpAtMs = 0;
const pending = new Set<FastTimer>();

/** How far this clock is ahead of the system's. */
function aheadMs(): number {
  return (realNow() - spedUpAtMs) * (speed - 1);
}

function now(): number {
  return realNow() + aheadMs();
}

type Callback = (...args: unknown[]) => unknown;

/** What the programs use of `NodeJS.Timeout`. */
class FastTimer {
  readonly #callback: () => unknown;
  readonly #ms: number;
  readonly #isInterval: boolean;
  #isReferenced = true;
  #dueAtMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(callback: () => unknown, ms: number, isInterval: boolean) {
    this.#callback = callback;
    this.#ms = ms >= 1 ? ms : 1;
    this.#isInterval = isInterval;
    this.refresh();
  }

  refresh(): this {
    this.#dueAtMs = now() + this.#ms;
    pending.add(this);
    this.reschedule();
    return this;
  }

  /** Sets the system's timer for the time that is left at the current speed. */
  reschedule(): void {
    realTimers.clearTimeout(this.#timer);
    this.#timer = realTimers.setTimeout(() => this.#fire(), (this.#dueAtMs - now()) / speed);
    if (!this.#isReferenced) this.#timer.unref();
  }

  #fire(): void {
    if (this.#isInterval) this.refresh();
    else pending.delete(this);
    this.#callback();
  }

  close(): this {
    pending.delete(this);
    realTimers.clearTimeout(this.#timer);
    return this;
  }

  ref(): this {
    this.#isReferenced = true;
    this.#timer?.ref();
    return this;
  }

  unref(): this {
    this.#isReferenced = false;
    this.#timer?.unref();
    return this;
  }

  hasRef(): boolean {
    return this.#isReferenced;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function setFastTimeout(callback: Callback, ms = 1, ...args: unknown[]): FastTimer {
  return new FastTimer(() => callback(...args), ms, false);
}

function setFastInterval(callback: Callback, ms = 1, ...args: unknown[]): FastTimer {
  return new FastTimer(() => callback(...args), ms, true);
}

function clearFastTimer(timer?: FastTimer | NodeJS.Timeout): void {
  if (timer instanceof FastTimer) timer.close();
  else realTimers.clearTimeout(timer);
}

function delay<Value>(
  ms?: number,
  value?: Value,
  { signal, ref = true }: { signal?: AbortSignal; ref?: boolean } = {},
): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      timer.close();
      reject(signal?.reason as Error);
    };
    const timer = setFastTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve(value);
    }, ms);
    if (!ref) timer.unref();
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

function timeoutSignal(ms: number): AbortSignal {
  const controller = new AbortController();
  const reason = new DOMException("The operation was aborted due to timeout", "TimeoutError");
  setFastTimeout(() => controller.abort(reason), ms).unref();
  return controller.signal;
}

class FastDate extends RealDate {
  constructor(...args: [] | [number]) {
    if (args.length === 0) super(FastDate.now());
    else super(...args);
  }

  static override now(): number {
    return Math.floor(RealDate.now() + aheadMs());
  }
}

Object.assign(globalThis, {
  setTimeout: setFastTimeout,
  setInterval: setFastInterval,
  clearTimeout: clearFastTimer,
  clearInterval: clearFastTimer,
});
if (ARE_DATES_FAST) {
  Object.assign(globalThis, { Date: FastDate });
  Object.assign(performance, { now });
}
Object.assign(AbortSignal, { timeout: timeoutSignal });
Object.assign(promises, { setTimeout: delay });
syncBuiltinESMExports();

process.on("SIGUSR2", () => {
  if (speed === 1) spedUpAtMs = realNow();
  speed = SPEED;
  for (const timer of pending) timer.reschedule();
});
