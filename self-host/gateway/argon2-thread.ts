/** The thread that hashes passwords: one at a time, with a lower priority, so that visitors go first. */
import { argon2Sync, type Argon2Parameters } from "node:crypto";
import { constants, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";

/** A message to the thread, which posts one response for each, in the same order. */
export type HashRequest = Argon2Parameters;
export type HashResponse = { hash: Uint8Array } | { error: string };

// Elsewhere a priority is that of the whole process.
if (process.platform === "linux") setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

parentPort!.on("message", (request: HashRequest) => parentPort!.postMessage(hash(request)));

function hash(request: HashRequest): HashResponse {
  try {
    return { hash: argon2Sync("argon2id", request) };
  } catch (error) {
    return { error: String(error) };
  }
}
