/** What of a tunnel's requests is kept and for how long, as its object was told. */
import { CaptureSettings, type Capturing } from "../../../protocol/schemas/inspector/captures.ts";

/** Of a tunnel that nobody has said a plan's retention of. */
const RETENTION_DEFAULT_DAYS = 7;

const KEY = "capturing";
const DAY_MS = 24 * 3600_000;

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

interface Known extends Capturing {
  /** At which version of the tunnel the plan had this retention. */
  retentionVersion: number;
}

export class CapturingSettings {
  readonly #kv: Storage;
  #known: Known;
  /** Names in lower case. */
  #redact: ReadonlySet<string>;

  constructor(kv: Storage) {
    this.#kv = kv;
    this.#known = kv.get<Known>(KEY) ?? UNTOLD;
    this.#redact = new Set(this.#known.redactHeaders);
  }

  publish(capturing: Capturing): void {
    if (this.#known.version >= capturing.version) return;
    const { version, retentionDays } = capturing;
    const settings = { ...CaptureSettings.parse(capturing), version };
    this.#keep({ ...this.#known, ...settings });
    this.retain(version, retentionDays);
  }

  /** Also told by whoever admits an agent, which may be sooner than what was published before. */
  retain(version: number, retentionDays: number): void {
    if (this.#known.retentionVersion > version) return;
    this.#keep({ ...this.#known, retentionVersion: version, retentionDays });
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

  #keep(known: Known): void {
    this.#known = known;
    this.#redact = new Set(known.redactHeaders);
    this.#kv.put<Known>(KEY, known);
  }
}

const UNTOLD: Known = {
  ...CaptureSettings.parse({}),
  version: -1,
  retentionVersion: -1,
  retentionDays: RETENTION_DEFAULT_DAYS,
};
