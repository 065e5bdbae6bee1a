/**
 * Argon2id as WebAssembly: it takes an eighth of the time of pure JavaScript. Used for the passwords of tunnels and, where
 * no gateway hashes them, of accounts; it is here because a tunnel's object may not import from the API. Import it
 * dynamically, so that only isolates that hash load it.
 *
 * The package's own interface passes the length of the text for that of its bytes, so its module is called directly.
 */
import wasm from "@phi-ag/argon2/argon2.wasm";
import { equalBytesInConstantTime } from "../../shared/constant-time.ts";
import { listHashedBytes, parsePasswordHash, type PasswordHashCost } from "./password-hash.ts";

const ARGON2ID = 2;
const VERSION = 19;

/** The functions of argon2.h that are used. All numbers are addresses or lengths. */
interface Argon2Exports {
  memory: WebAssembly.Memory;
  _initialize: () => void;
  malloc: (bytes: number) => number;
  free: (address: number) => void;
  argon2_hash: (
    ...parameters: [
      timeCost: number,
      memoryCost: number,
      parallelism: number,
      secret: number,
      secretLength: number,
      salt: number,
      saltLength: number,
      hash: number,
      hashLength: number,
      encoded: number,
      encodedLength: number,
      type: number,
      version: number,
    ]
  ) => number;
}

let argon2: Argon2Exports | undefined;

/** A hash runs to its end without yielding, so an isolate never holds the memory of two at once. */
function getArgon2(): Argon2Exports {
  if (!argon2) {
    argon2 = new WebAssembly.Instance(wasm).exports as unknown as Argon2Exports;
    argon2._initialize();
  }
  return argon2;
}

/** @throws Error when there is not enough memory, or a parameter is out of range. */
export function deriveHash(
  secret: Uint8Array,
  salt: Uint8Array,
  cost: PasswordHashCost,
): Uint8Array {
  const { memory, malloc, free, argon2_hash } = getArgon2();
  const { memoryCost, timeCost, parallelism, hashLength } = cost;
  const secretAt = malloc(secret.length + salt.length + hashLength);
  const saltAt = secretAt + secret.length;
  const hashAt = saltAt + salt.length;
  try {
    new Uint8Array(memory.buffer).set(secret, secretAt);
    new Uint8Array(memory.buffer).set(salt, saltAt);
    const error = argon2_hash(
      timeCost,
      memoryCost,
      parallelism,
      secretAt,
      secret.length,
      saltAt,
      salt.length,
      hashAt,
      hashLength,
      0,
      0,
      ARGON2ID,
      VERSION,
    );
    if (error !== 0) throw new Error(`argon2 failed with error ${error}`);
    // The memory may have grown, which replaces its buffer.
    return new Uint8Array(memory.buffer).slice(hashAt, hashAt + hashLength);
  } finally {
    new Uint8Array(memory.buffer).fill(0, secretAt, saltAt);
    free(secretAt);
  }
}

/** @param hash in PHC form. */
export function verifySecret(hash: string, secret: string): boolean {
  const { salt, derived, cost } = parsePasswordHash(hash);
  return listHashedBytes(secret).some((bytes) =>
    equalBytesInConstantTime(deriveHash(bytes, salt, cost), derived),
  );
}
