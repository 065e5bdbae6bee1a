import { homedir } from "node:os";

/** @returns undefined when this process's user has none: in a container, a user id may belong to no user. */
export function findHomeDirectory(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}
