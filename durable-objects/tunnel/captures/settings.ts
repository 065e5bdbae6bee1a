/** What of a tunnel's requests is kept and for how long, as its object was told. */
import { CaptureSettings, type CapturePolicy } from "../../../protocol/schemas/inspector/captures.ts";

/** Of a tunnel that nobody has said a plan's retention of. */
const RETENTION_DEFAULT_DAYS = 7;

const KEY = "capturing";
const DAY_MS = 24 * 3600_000;

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

interface StoredSettings extends CapturePolicy {
  /** At which version of the tunnel the plan had this retention. */
  retentionVersion: number;
}

export class StoredCaptureSettings {
  readonly #kv: Storage;
  #stored: StoredSettings;
  /** Names in lower case. */
  #redact: ReadonlySet<string>;

  constructor(kv: Storage) {
    this.#kv = kv;
    this.#stored = kv.get<StoredSettings>(KEY) ?? DEFAULTS;
    this.#redact = new Set(this.#stored.redactHeaders);
  }

  publish(capturing: CapturePolicy): void {
    if (this.#stored.version >= capturing.version) return;
    const { version, retentionDays } = capturing;
    const settings = { ...CaptureSettings.parse(capturing), version };
    this.#save({ ...this.#stored, ...settings });
    this.setRetention(version, retentionDays);
  }

  /** Also told by whoever admits an agent, which may be sooner than what was published before. */
  setRetention(version: number, retentionDays: number): void {
    if (this.#stored.retentionVersion > version) return;
    this.#save({ ...this.#stored, retentionVersion: version, retentionDays });
  }

  remove(): void {
    this.#kv.delete(KEY);
  }

  get isOn(): boolean {
    return this.#stored.capture;
  }

  get bodies(): boolean {
    return this.#stored.bodies;
  }

  get allowReplay(): boolean {
    return this.#stored.allowReplay;
  }

  get redact(): ReadonlySet<string> {
    return this.#redact;
  }

  get retentionMs(): number {
    return this.#stored.retentionDays * DAY_MS;
  }

  #save(known: StoredSettings): void {
    this.#stored = known;
    this.#redact = new Set(known.redactHeaders);
    this.#kv.put<StoredSettings>(KEY, known);
  }
}

const DEFAULTS: StoredSettings = {
  ...CaptureSettings.parse({}),
  version: -1,
  retentionVersion: -1,
  retentionDays: RETENTION_DEFAULT_DAYS,
};
