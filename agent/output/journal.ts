/** Whether systemd's journal records what this process prints. It adds the time to each line. */
import { fstatSync } from "node:fs";

/**
 * @param fd the descriptor of the stream. @param journalStream set by systemd; programs that this one starts with another
 * output inherit it too, so it has to name the stream (systemd.exec(5)).
 */
export function isJournal(fd: number, journalStream = process.env["JOURNAL_STREAM"]): boolean {
  if (journalStream === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return journalStream === `${dev}:${ino}`;
  } catch {
    // The stream was closed before the program started.
    return false;
  }
}
