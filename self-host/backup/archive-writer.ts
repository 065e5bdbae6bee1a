/** Writes the file of a backup: a tar archive, compressed with gzip, that ends with the manifest. */
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { StartError } from "../errors.ts";
import { type ArchivedFile, type Manifest, MANIFEST_MAX_BYTES, MANIFEST_PATH } from "./manifest.ts";
import { createPadding, formatTarHeader, TAR_END } from "./tar.ts";

/** Rows and captured bodies compress well at any level, and a low one costs a third of the time. */
const GZIP_LEVEL = 1;

export class ArchiveWriter {
  readonly files: ArchivedFile[] = [];
  readonly #tar: Readable;
  readonly #written: Promise<void>;
  #wanted = Promise.withResolvers<void>();

  /** @param path of a file that does not exist yet. */
  constructor(path: string) {
    this.#tar = new Readable({ read: () => this.#wanted.resolve() });
    const output = createWriteStream(path, { mode: 0o600, flags: "wx", flush: true });
    this.#written = pipeline(this.#tar, createGzip({ level: GZIP_LEVEL }), output);
    // Reported by the next write.
    this.#written.catch(() => {});
  }

  async addBytes(path: string, content: Buffer): Promise<void> {
    await this.#add(path, content.length, [content]);
  }

  async addFile(path: string, source: string): Promise<void> {
    const { size } = await stat(source);
    await this.#add(path, size, createReadStream(source));
  }

  /** Resolves when all bytes are on the disk. @throws StartError for a manifest that no restore accepts. */
  async finish(manifest: Omit<Manifest, "files">): Promise<void> {
    const content = Buffer.from(JSON.stringify({ ...manifest, files: this.files }));
    if (content.length > MANIFEST_MAX_BYTES) {
      throw new StartError(
        `there are too many files: their list takes ${content.length} bytes, and a restore accepts at most ` +
          `${MANIFEST_MAX_BYTES}; stop the server and copy its data directory instead`,
      );
    }
    await this.#write(formatTarHeader({ path: MANIFEST_PATH, size: content.length }));
    await this.#write(content);
    await this.#write(createPadding(content.length));
    await this.#write(TAR_END);
    this.#tar.push(null);
    await this.#written;
  }

  /** Closes the file, which is incomplete. */
  async abort(): Promise<void> {
    this.#tar.destroy();
    await this.#written.catch(() => {});
  }

  async #add(
    path: string,
    size: number,
    content: Iterable<Buffer> | AsyncIterable<Buffer>,
  ): Promise<void> {
    const hash = createHash("sha256");
    let bytes = 0;
    await this.#write(formatTarHeader({ path, size }));
    for await (const chunk of content) {
      hash.update(chunk);
      bytes += chunk.length;
      await this.#write(chunk);
    }
    if (bytes !== size)
      throw new StartError(`${path} changed while it was read: run the backup again`);
    await this.#write(createPadding(size));
    this.files.push({ path, size, sha256: hash.digest("hex") });
  }

  /** Resolves when the archive takes more bytes, so that no more than one chunk waits in memory. */
  async #write(bytes: Buffer): Promise<void> {
    if (bytes.length === 0) return;
    this.#wanted = Promise.withResolvers();
    if (this.#tar.push(bytes)) return;
    await Promise.race([this.#wanted.promise, this.#written]);
  }
}

/** Makes a renamed file survive a loss of power. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
