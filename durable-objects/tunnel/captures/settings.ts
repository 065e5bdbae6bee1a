/** What of a tunnel's requests is kept and for how long, as its object was told. */
import { RETENTION_DEFAULT_DAYS } from "../../../protocol/limits/captures.ts";
import { CaptureSettings, type Capturing } from "../../../protocol/resources/captures.ts";

const KEY = "capturing";
const DAY_MS = 24 * 3600_000;

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

export class CapturingSettings {
  readonly #kv: Storage;
  #known: Capturing;
  /** Names in lower case. */
  #redact: ReadonlySet<string>;

  constructor(kv: Storage) {
    this.#kv = kv;
    this.#known = kv.get<Capturing>(KEY) ?? UNTOLD;
    this.#redact = new Set(this.#known.redactHeaders);
  }

  publish(capturing: Capturing): void {
    if (this.#known.version >= capturing.version) return;
    const { version, retentionDays } = capturing;
    this.#keep({ ...CaptureSettings.parse(capturing), version, retentionDays });
  }

  /** What whoever admits an agent knows. A plan that changed has given the tunnel the next version. */
  retain(version: number, retentionDays: number): void {
    const { version: known, retentionDays: before } = this.#known;
    if (known <= version && before !== retentionDays) this.#keep({ ...this.#known, retentionDays });
  }

  remove(): void {
    this.#kv.delete(KEY);
  }

  get isOn(): boolean {
    return this.#known.capture;
  }

  get bodies(): boolean {
    return this.#known.bodies;
  }

  get allowReplay(): boolean {
    return this.#known.allowReplay;
  }

  get redact(): ReadonlySet<string> {
    return this.#redact;
  }

  get retentionMs(): number {
    return this.#known.retentionDays * DAY_MS;
  }

  #keep(capturing: Capturing): void {
    this.#known = capturing;
    this.#redact = new Set(capturing.redactHeaders);
    this.#kv.put<Capturing>(KEY, capturing);
  }
}

const UNTOLD: Capturing = {
  ...CaptureSettings.parse({}),
  version: -1,
  retentionDays: RETENTION_DEFAULT_DAYS,
};
