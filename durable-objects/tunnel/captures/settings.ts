/** Which parts of a tunnel's requests are captured, and how long they are stored. */
import { toPlainName } from "../../../protocol/header-names.ts";
import {
  CaptureSettings,
  type VersionedCaptureSettings,
} from "../../../protocol/schemas/inspector/captures.ts";
import { DAY_MS } from "../../../shared/time.ts";

/** For a tunnel whose plan's retention has not been published yet. */
const RETENTION_DEFAULT_DAYS = 7;

const KEY = "capturing";

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

interface StoredSettings extends VersionedCaptureSettings {
  /** The version of the tunnel that the retention belongs to. */
  retentionVersion: number;
}

export class StoredCaptureSettings {
  readonly #kv: Storage;
  #stored: StoredSettings;
  /** Plain names. */
  #redact: ReadonlySet<string>;

  constructor(kv: Storage) {
    this.#kv = kv;
    this.#stored = kv.get<StoredSettings>(KEY) ?? DEFAULTS;
    this.#redact = toPlainNames(this.#stored.redactHeaders);
  }

  publish(settings: VersionedCaptureSettings): void {
    if (this.#stored.version >= settings.version) return;
    const { version, retentionDays } = settings;
    this.#save({ ...this.#stored, ...CaptureSettings.parse(settings), version });
    this.setRetention(version, retentionDays);
  }

  /** As they were last published; undefined before that. */
  get published(): VersionedCaptureSettings | undefined {
    const { retentionVersion: _, ...settings } = this.#stored;
    return settings.version === DEFAULTS.version ? undefined : settings;
  }

  /** Also called when an agent is admitted, which can be before an earlier publication arrives. */
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

  #save(settings: StoredSettings): void {
    this.#stored = settings;
    this.#redact = toPlainNames(settings.redactHeaders);
    this.#kv.put<StoredSettings>(KEY, settings);
  }
}

const DEFAULTS: StoredSettings = {
  ...CaptureSettings.parse({}),
  version: -1,
  retentionVersion: -1,
  retentionDays: RETENTION_DEFAULT_DAYS,
};

function toPlainNames(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map(toPlainName));
}
