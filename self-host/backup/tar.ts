/** The parts of the tar format (POSIX.1-1988 "ustar") that are needed here: regular files with a name and a size. */
import { StartError } from "../errors.ts";

export const TAR_BLOCK_BYTES = 512;
/** Two blocks of zeros. */
export const TAR_END = Buffer.alloc(2 * TAR_BLOCK_BYTES);

const FIELD = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  magic: [257, 8],
  prefix: [345, 155],
} as const;
const REGULAR_FILE = "0";
/** Readable and writable by its owner only. */
const PRIVATE_FILE = 0o600;
const MAGIC = "ustar\x0000";
/** Eleven octal digits: 8 GiB. */
export const TAR_FILE_MAX_BYTES = 8 ** 11 - 1;

interface TarHeader {
  path: string;
  /** Bytes. */
  size: number;
}

/** Zeros that fill the last block of a file. */
export function createPadding(size: number): Buffer {
  return Buffer.alloc((TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES);
}

/** @throws StartError when the format has no room for the path or the size. */
export function formatTarHeader({ path, size }: TarHeader, mode = PRIVATE_FILE): Buffer {
  const cut = path.lastIndexOf("/");
  const [prefix, name] = cut === -1 ? ["", path] : [path.slice(0, cut), path.slice(cut + 1)];
  if (name.length > FIELD.name[1] || prefix.length > FIELD.prefix[1] || size > TAR_FILE_MAX_BYTES) {
    throw new StartError(
      `${path} does not fit into a backup (${size} bytes): copy DATA_DIR while the server is stopped`,
    );
  }
  const block = Buffer.alloc(TAR_BLOCK_BYTES);
  const write = (field: keyof typeof FIELD, text: string) =>
    block.write(text, FIELD[field][0], FIELD[field][1], "latin1");
  write("name", name);
  write("mode", `${mode.toString(8).padStart(7, "0")}\0`);
  write("uid", "0000000\0");
  write("gid", "0000000\0");
  write("size", `${size.toString(8).padStart(11, "0")}\0`);
  write("mtime", "00000000000\0");
  write("type", REGULAR_FILE);
  write("magic", MAGIC);
  write("prefix", prefix);
  write("checksum", `${computeChecksum(block).toString(8).padStart(6, "0")}\0 `);
  return block;
}

/** @returns undefined for a block that is not the header of a regular file. */
export function parseTarHeader(block: Buffer): TarHeader | undefined {
  const read = (field: keyof typeof FIELD) => {
    const [start, length] = FIELD[field];
    return block.toString("latin1", start, start + length).split("\0")[0]!;
  };
  const octal = (field: "size" | "checksum") =>
    /^[0-7]+ ?$/.test(read(field)) ? parseInt(read(field), 8) : NaN;
  if (octal("checksum") !== computeChecksum(block) || read("type") !== REGULAR_FILE)
    return undefined;
  const size = octal("size");
  if (!Number.isSafeInteger(size)) return undefined;
  const prefix = read("prefix");
  return { path: prefix === "" ? read("name") : `${prefix}/${read("name")}`, size };
}

/** The sum of all bytes, with the checksum itself as spaces. */
function computeChecksum(block: Buffer): number {
  const [start, length] = FIELD.checksum;
  let sum = length * " ".charCodeAt(0);
  for (const [at, byte] of block.entries()) {
    if (at < start || at >= start + length) sum += byte;
  }
  return sum;
}
