/** Reads the file of a backup and compares each of its files with the manifest. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { buffer } from "node:stream/consumers";
import { createGunzip } from "node:zlib";
import { StartError } from "../errors.ts";
import { type ArchivedFile, Manifest, MANIFEST_MAX_BYTES, MANIFEST_PATH } from "./manifest.ts";
import { createPadding, parseTarHeader, TAR_BLOCK_BYTES } from "./tar.ts";
import { getErrorCode, getErrorMessage } from "../../shared/error-message.ts";

interface ArchiveEntry {
  path: string;
  /** Bytes. */
  size: number;
  content: AsyncGenerator<Buffer, void, void>;
}

/** @throws StartError unless the file is complete and unchanged since it was written. */
export async function verifyArchive(path: string): Promise<Manifest> {
  const found: ArchivedFile[] = [];
  let text: string | undefined;
  for await (const entry of readArchive(path)) {
    if (text !== undefined) throw buildDamagedError(path, "it continues after its end");
    if (entry.path === MANIFEST_PATH) text = await readManifest(path, entry);
    else found.push(await hashEntry(entry));
  }
  if (text === undefined) throw buildDamagedError(path, "its end is missing");
  const manifest = parseManifest(path, text);
  const [actual, expected] = [found, manifest.files].map(
    (files) => new Map(files.map((file) => [file.path, `${file.size} ${file.sha256}`])),
  ) as [Map<string, string>, Map<string, string>];
  for (const [name, sum] of expected) {
    if (!actual.has(name)) throw buildDamagedError(path, `${name} is missing`);
    if (actual.get(name) !== sum) throw buildDamagedError(path, `${name} was changed`);
  }
  if (found.length !== manifest.files.length)
    throw buildDamagedError(path, "it has files that it does not list");
  return manifest;
}

/** The content of an entry is read completely, or not at all. @throws StartError for a damaged archive. */
export async function* readArchive(path: string): AsyncGenerator<ArchiveEntry, void, void> {
  const file = createReadStream(path);
  const unpacked = createGunzip();
  file.on("error", (error) => unpacked.destroy(error));
  const bytes = new ByteReader(file.pipe(unpacked), (error) => toReadError(path, error));
  try {
    for (;;) {
      const block = await bytes.read(TAR_BLOCK_BYTES);
      if (block.every((byte) => byte === 0)) break;
      const header = parseTarHeader(block);
      if (!header) throw buildDamagedError(path, "it has an invalid entry");
      const content = bytes.stream(header.size);
      yield { ...header, content };
      for await (const _ of content);
      await bytes.read(createPadding(header.size).length);
    }
    await bytes.readToEnd();
  } finally {
    file.destroy();
    unpacked.destroy();
  }
}

function buildDamagedError(path: string, reason: string): StartError {
  return new StartError(
    `${path} is damaged or not a backup (${reason}): copy it again, or use an earlier backup`,
  );
}

function toReadError(path: string, error: unknown): StartError {
  const code = getErrorCode(error);
  if (code === "ENOENT") return new StartError(`${path} does not exist: name the file of a backup`);
  if (code === "EACCES" || code === "EISDIR") {
    return new StartError(
      `${path} can't be read (${getErrorMessage(error)}): name a file that this user can read`,
    );
  }
  return buildDamagedError(path, getErrorMessage(error));
}

async function hashEntry({ path, size, content }: ArchiveEntry): Promise<ArchivedFile> {
  const hash = createHash("sha256");
  for await (const chunk of content) hash.update(chunk);
  return { path, size, sha256: hash.digest("hex") };
}

async function readManifest(path: string, { size, content }: ArchiveEntry): Promise<string> {
  if (size > MANIFEST_MAX_BYTES) throw buildDamagedError(path, "its list of files is too long");
  return (await buffer(content)).toString();
}

function parseManifest(path: string, text: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw buildDamagedError(path, "its list of files can't be read");
  }
  const { data, error } = Manifest.safeParse(value);
  if (!data)
    throw buildDamagedError(
      path,
      `its list of files is invalid at ${error.issues[0]?.path.join(".")}`,
    );
  return data;
}

/** Reads given numbers of bytes from a stream. */
class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #toError: (error: unknown) => Error;
  #rest: Buffer = Buffer.alloc(0);

  /** @param toError makes the error to throw when the stream fails, or ends too early. */
  constructor(stream: AsyncIterable<Buffer>, toError: (error: unknown) => Error) {
    this.#chunks = stream[Symbol.asyncIterator]();
    this.#toError = toError;
  }

  read(size: number): Promise<Buffer> {
    return buffer(this.stream(size));
  }

  async *stream(size: number): AsyncGenerator<Buffer, void, void> {
    for (let left = size; left > 0;) {
      if (this.#rest.length === 0) this.#rest = await this.#next();
      const chunk = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(chunk.length);
      left -= chunk.length;
      yield chunk;
    }
  }

  /** The check of gzip's last bytes comes at the end of the stream. */
  async readToEnd(): Promise<void> {
    while ((await this.#advance()) !== undefined);
  }

  async #next(): Promise<Buffer> {
    const chunk = await this.#advance();
    if (chunk === undefined) throw this.#toError(new Error("its end is missing"));
    return chunk;
  }

  async #advance(): Promise<Buffer | undefined> {
    try {
      const next = await this.#chunks.next();
      return next.done === true ? undefined : next.value;
    } catch (error) {
      throw this.#toError(error);
    }
  }
}
