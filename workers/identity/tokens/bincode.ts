/** bincode 1 as `bincode::serialize` writes it: little endian, fixed-width integers, lengths of 64 bits. */
import { toUtf8 } from "../../../shared/bytes.ts";

export class BincodeWriter {
  #bytes: number[] = [];

  u32(value: number): void {
    this.#integer(BigInt(value), 4);
  }

  i64(value: bigint): void {
    this.#integer(BigInt.asUintN(64, value), 8);
  }

  /** An array of known length carries no length. */
  fixed(bytes: Uint8Array): void {
    this.#bytes.push(...bytes);
  }

  bytes(bytes: Uint8Array): void {
    this.#length(bytes.byteLength);
    this.fixed(bytes);
  }

  string(text: string): void {
    this.bytes(toUtf8(text));
  }

  option<Value>(value: Value | null, write: (value: Value) => void): void {
    this.#bytes.push(value === null ? 0 : 1);
    if (value !== null) write(value);
  }

  list<Item>(items: readonly Item[], write: (item: Item) => void): void {
    this.#length(items.length);
    for (const item of items) write(item);
  }

  finish(): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(this.#bytes);
  }

  #length(length: number): void {
    this.#integer(BigInt(length), 8);
  }

  #integer(value: bigint, width: number): void {
    for (let byte = 0; byte < width; byte++) {
      this.#bytes.push(Number((value >> BigInt(8 * byte)) & 0xffn));
    }
  }
}

export class BincodeError extends Error {
  override name = "BincodeError";
}

export class BincodeReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Where the next value starts. */
  get position(): number {
    return this.#at;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.byteLength;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  i64(): bigint {
    return this.#view.getBigInt64(this.#take(8), true);
  }

  fixed(length: number): Uint8Array<ArrayBuffer> {
    const start = this.#take(length);
    return new Uint8Array(this.#bytes.subarray(start, start + length));
  }

  bytes(): Uint8Array<ArrayBuffer> {
    return this.fixed(this.#length());
  }

  string(): string {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.bytes());
    } catch {
      throw new BincodeError("a string is not UTF-8");
    }
  }

  option<Value>(read: () => Value): Value | null {
    const tag = this.u8();
    if (tag > 1) throw new BincodeError(`an option has the tag ${tag}`);
    return tag === 1 ? read() : null;
  }

  list<Item>(read: () => Item): Item[] {
    const length = this.#length();
    const items: Item[] = [];
    while (items.length < length) items.push(read());
    return items;
  }

  /** No item is smaller than a byte, so a length beyond the remaining bytes is invalid: nothing is allocated for it. */
  #length(): number {
    const length = this.#view.getBigUint64(this.#take(8), true);
    if (length > BigInt(this.#bytes.byteLength - this.#at)) {
      throw new BincodeError("a length exceeds the remaining bytes");
    }
    return Number(length);
  }

  #take(length: number): number {
    const start = this.#at;
    if (length > this.#bytes.byteLength - start) throw new BincodeError("the input ends too early");
    this.#at += length;
    return start;
  }
}
