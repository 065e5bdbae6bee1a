/**
 * Notices a process that hangs: it is there, but has answered nothing for a minute, because it is in an endless loop or was
 * stopped. A process that is only slow must never be taken for one that hangs. So the time counts only while nothing else
 * explains the silence: this process runs on time itself, no debugger holds the other one, and it does not wait for its disk.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { MINUTE_MS, SECOND_MS } from "../../shared/time.ts";

const CHECK_INTERVAL_MS = SECOND_MS;
/** From the end of a ping to the next one. */
const PING_INTERVAL_MS = 5 * SECOND_MS;
/** After a longer pause, this process was stopped or had too little CPU, and so may the other one. */
const CHECK_LATE_MS = 2 * SECOND_MS;
/** Longer than any pause of a process that works, such as for garbage collection. */
const SILENT_CHECKS_MAX = MINUTE_MS / CHECK_INTERVAL_MS;
/** How long a ping may take: one that is answered late is answered. */
export const PING_MAX_MS = 2 * MINUTE_MS;

/** The rule, without clock and process. */
export class HangDetector {
  #lastCheckMs: number | undefined;
  #silentChecks = 0;
  #hasAnswered = false;

  recordAnswer(): void {
    this.#hasAnswered = true;
    this.#silentChecks = 0;
  }

  /**
   * To be called every second.
   * @param nowMs of a clock that is never set.
   * @param canAnswer false: something else explains the silence.
   * @returns whether the process hangs: at most once a minute, and never before its first answer.
   */
  check(nowMs: number, canAnswer: boolean): boolean {
    const isLate = nowMs - (this.#lastCheckMs ?? nowMs) > CHECK_LATE_MS;
    this.#lastCheckMs = nowMs;
    if (isLate || !canAnswer) this.#silentChecks = 0;
    else this.#silentChecks += 1;
    if (!this.#hasAnswered || this.#silentChecks < SILENT_CHECKS_MAX) return false;
    this.#silentChecks = 0;
    return true;
  }
}

interface WatchedProcess {
  pid: number;
  /** Ends when the process answers. Called again after that. */
  ping: () => Promise<unknown>;
  /** @param state as Linux describes it, such as `T (stopped)`; undefined on other systems. */
  onHang: (state: string | undefined) => void;
}

/** @returns a function that ends the watch. */
export function watchForHang({ pid, ping, onHang }: WatchedProcess): () => void {
  const detector = new HangDetector();
  const ended = new AbortController();
  const { signal } = ended;
  async function keepPinging(): Promise<void> {
    while (!signal.aborted) {
      // A process that refuses or resets a connection does not hang: it exits, or has as many as it accepts.
      await ping().catch(() => undefined);
      detector.recordAnswer();
      await sleep(PING_INTERVAL_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
  void keepPinging();
  const checks = setInterval(() => {
    const status = readStatus(pid);
    if (detector.check(performance.now(), canAnswer(status))) onHang(status?.state);
  }, CHECK_INTERVAL_MS).unref();
  signal.addEventListener("abort", () => clearInterval(checks));
  return () => ended.abort();
}

interface ProcessStatus {
  state: string;
  /** 0: none. */
  debuggerPid: number;
}

/** @returns undefined where the system does not have `/proc` (proc(5)), and when the process has exited. */
function readStatus(pid: number): ProcessStatus | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "utf8");
    return {
      state: /^State:\s+(.+)$/m.exec(text)?.[1] ?? "",
      debuggerPid: Number(/^TracerPid:\s+(\d+)$/m.exec(text)?.[1]),
    };
  } catch {
    return undefined;
  }
}

/** `D`: it waits for a disk, and even `kill -9` would wait with it. */
function canAnswer(status: ProcessStatus | undefined): boolean {
  return !status || (!status.state.startsWith("D") && status.debuggerPid === 0);
}
