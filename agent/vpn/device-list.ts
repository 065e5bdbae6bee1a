/** The network's devices, read from the API at an interval. */
import { setTimeout as delay } from "node:timers/promises";
import type { Device } from "../../protocol/schemas/networks.ts";
import { getBackOffMs } from "../back-off.ts";
import { RejectionError } from "../rejection-error.ts";

/** The shortest time between two reads: a refresh for an unknown device waits this long. */
const REFRESH_MIN_MS = 1_000;

interface DeviceListOptions {
  read(signal: AbortSignal): Promise<Device[]>;
  intervalMs: number;
  /** Called with each list that differs from the last. */
  onChange(devices: Device[]): void;
  /** Called after each attempt to read it, successful or not. */
  onSettled(): void;
}

export class DeviceList {
  readonly #options: DeviceListOptions;
  readonly #stop = new AbortController();
  #devices: Device[] = [];
  #text = "";
  #wake = new AbortController();
  #isStarted = false;

  constructor(options: DeviceListOptions) {
    this.#options = options;
  }

  get devices(): readonly Device[] {
    return this.#devices;
  }

  find(publicKey: string): Device | undefined {
    return this.#devices.find((device) => device.public_key === publicKey);
  }

  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.#run();
  }

  stop(): void {
    this.#stop.abort();
    this.#wake.abort();
  }

  /** Reads the list soon instead of after the interval. */
  refresh(): void {
    this.#wake.abort();
  }

  /** The next list counts as changed, even if it is the same. */
  invalidate(): void {
    this.#text = "";
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#stop.signal.aborted;) {
      const startedAtMs = performance.now();
      try {
        this.#set(await this.#options.read(this.#stop.signal));
        failures = 0;
      } catch (error) {
        // A rejection ends the agent where it serves; this list only retries slowly.
        failures += error instanceof RejectionError ? 10 : 1;
      }
      this.#options.onSettled();
      const intervalMs = failures > 0 ? getBackOffMs(failures) : this.#options.intervalMs;
      await this.#pause(Math.max(intervalMs, REFRESH_MIN_MS));
      const elapsedMs = performance.now() - startedAtMs;
      // Refreshes may not read more often than this, however many are requested.
      if (elapsedMs < REFRESH_MIN_MS) {
        await delay(REFRESH_MIN_MS - elapsedMs, undefined, { signal: this.#stop.signal }).catch(
          () => undefined,
        );
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    if (this.#stop.signal.aborted) return;
    // A refresh that was requested meanwhile counts: the controller is replaced only after the pause.
    await delay(ms, undefined, { signal: this.#wake.signal }).catch(() => undefined);
    this.#wake = new AbortController();
  }

  #set(devices: Device[]): void {
    if (this.#stop.signal.aborted) return;
    const text = JSON.stringify(devices);
    if (text === this.#text) return;
    this.#text = text;
    this.#devices = devices;
    this.#options.onChange(devices);
  }
}
