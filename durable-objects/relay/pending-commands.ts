/**
 * Commands that a relay must receive even if it is disconnected now: ended associations and changed allowlists.
 * Each is stored for as long as an agent can use a ticket that was issued before it, and is sent again on every
 * new link.
 */
import { RELAY_TICKET_USABLE_MAX_MS } from "../../protocol/relay/limits.ts";
import { ApiToRelayMessage } from "../../protocol/relay/link.ts";

/** Beyond this the oldest command is dropped; the affected tickets expire soon. */
const PENDING_COMMANDS_MAX = 20_000;

export type RelayCommand = Extract<ApiToRelayMessage, { type: "revoke" | "allowed_cidrs" }>;

export class PendingRelayCommands {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    // The name of the table is part of the stored format.
    sql.exec(`create table if not exists notices (
      sequence integer primary key autoincrement,
      subject text not null unique,
      message text not null,
      ends_at_ms integer not null
    )`);
  }

  /** Replaces an identical command, and an earlier allowlist of the same tunnel. */
  add(command: RelayCommand, nowMs: number): void {
    this.removeExpired(nowMs);
    const message = JSON.stringify(command);
    this.#sql.exec(
      "insert or replace into notices (subject, message, ends_at_ms) values (?, ?, ?)",
      getSubject(command, message),
      message,
      nowMs + RELAY_TICKET_USABLE_MAX_MS,
    );
    this.#sql.exec(
      "delete from notices where sequence <= (select max(sequence) from notices) - ?",
      PENDING_COMMANDS_MAX,
    );
  }

  /** The oldest first. */
  list(nowMs: number): RelayCommand[] {
    return this.#sql
      .exec<{
        message: string;
      }>("select message from notices where ends_at_ms > ? order by sequence", nowMs)
      .toArray()
      .map(({ message }) => ApiToRelayMessage.parse(JSON.parse(message)))
      .filter((command) => command.type === "revoke" || command.type === "allowed_cidrs");
  }

  /** Whether a network was deleted recently. */
  isDeleted(networkId: string): boolean {
    const subject = toDeletionSubject(networkId);
    const found = this.#sql.exec("select 1 from notices where subject = ?", subject);
    return found.toArray().length > 0;
  }

  removeExpired(nowMs: number): void {
    this.#sql.exec("delete from notices where ends_at_ms <= ?", nowMs);
  }
}

function getSubject(command: RelayCommand, message: string): string {
  if (command.type === "allowed_cidrs") return `allowed_cidrs ${command.tunnelId}`;
  const { reason, id } = command;
  return reason === "network_deleted" && id !== undefined ? toDeletionSubject(id) : message;
}

function toDeletionSubject(networkId: string): string {
  return `network_deleted ${networkId}`;
}
