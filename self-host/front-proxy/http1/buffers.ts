/** Bytes of a socket as a Buffer, which has more methods. */

/** @returns a Buffer on the same memory. */
export function toBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

export const EMPTY = new Uint8Array(0);
