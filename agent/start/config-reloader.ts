/** Applies underpass.yml again after it has changed, and when the user requests it with SIGHUP. */
import { readConfigFile } from "../config/config-file.ts";
import { explainError } from "../error-message.ts";
import { ConfigQueue } from "./config-queue.ts";
import type { GroupChanges, GroupConfig } from "./tunnel-group.ts";
import { watchForChanges } from "./watch-file.ts";

interface ConfigReloaderOptions {
  path: string;
  /** The text that is in force. */
  text: string;
  /** @throws UsageError when the text is not a valid configuration. */
  parse(text: string): Promise<GroupConfig>;
  apply(config: GroupConfig): Promise<GroupChanges>;
  /** A new text is valid; it is applied once the changes before it are. */
  onAccepted(): void;
  onReloaded(changes: GroupChanges, config: GroupConfig): void;
  /** The file can't be read, is not valid, or could not be applied. */
  onFailed(reason: string): void;
}

export class ConfigReloader {
  readonly #options: ConfigReloaderOptions;
  readonly #queue: ConfigQueue;
  readonly #endWatch: () => void;
  /** undefined when the file could not be read: the next text is new, even if it is the same as before. */
  #text: string | undefined;
  /** One reading of the file at a time. */
  #reading: Promise<void> = Promise.resolve();

  constructor(options: ConfigReloaderOptions) {
    this.#options = options;
    this.#text = options.text;
    this.#queue = new ConfigQueue(async (config) =>
      options.onReloaded(await options.apply(config), config),
    );
    this.#endWatch = watchForChanges(options.path, () => this.#enqueue("changed"));
  }

  /** Applies the file even if its text is the same: files that it names may have changed. */
  readonly request = (): void => this.#enqueue("requested");

  end(): void {
    this.#endWatch();
  }

  #enqueue(reason: "changed" | "requested"): void {
    this.#reading = this.#reading.then(() => this.#reload(reason));
  }

  async #reload(reason: "changed" | "requested"): Promise<void> {
    try {
      const text = await this.#read();
      if (text === this.#text && reason === "changed") return;
      this.#text = text;
      const config = await this.#options.parse(text);
      this.#options.onAccepted();
      // Not awaited: the file may change again while tunnels finish their requests.
      this.#queue.add(config).catch((error: unknown) => this.#fail(error));
    } catch (error) {
      this.#queue.dropWaiting();
      this.#fail(error);
    }
  }

  async #read(): Promise<string> {
    try {
      return await readConfigFile(this.#options.path);
    } catch (error) {
      this.#text = undefined;
      throw error;
    }
  }

  #fail(error: unknown): void {
    this.#options.onFailed(explainError(error));
  }
}
