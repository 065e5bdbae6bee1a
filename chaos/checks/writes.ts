/** Every acknowledged change is there, once; every other one at most once. */
import type { AuditEvent } from "../../protocol/schemas/organizations/audit.ts";
import type { Token } from "../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import type { History, WriteEntry } from "../history.ts";
import type { Owner } from "../owner.ts";
import { toCheckResult, type CheckResult } from "./check.ts";

/** What the API lists after the experiment. */
interface StoredRows {
  /** The subdomains of the tunnels. */
  tunnels: string[];
  tokens: string[];
  /** The names in the audit log, of tunnels that were created. */
  createdTunnels: string[];
}

/** @returns undefined when a list can't be read. */
export async function readStoredRows(owner: Owner): Promise<StoredRows | undefined> {
  const byId = ({ id }: { id: string }) => id;
  const tunnels = await owner.list<Tunnel>("/tunnels", byId);
  const tokens = await owner.list<Token>("/tokens", byId);
  const events = await owner.list<AuditEvent>("/events?action=tunnel_created", byId);
  if (!tunnels || !tokens || !events) return undefined;
  return {
    tunnels: tunnels.map(({ subdomain }) => subdomain),
    tokens: tokens.map(({ name }) => name),
    createdTunnels: events.map(({ metadata }) => String(metadata.subdomain)),
  };
}

export function checkWrites(history: History, rows: StoredRows): CheckResult {
  const writes = history.list("write");
  const find = (kind: WriteEntry["kind"]) => writes.filter((write) => write.kind === kind);
  const deletions = new Map(find("delete-tunnel").map(({ name, result }) => [name, result]));
  const differences = [
    ...find("create-tunnel").flatMap((write) => {
      const expected = combine(write, deletions.get(write.name));
      return compare("tunnel", write.name, expected, count(rows.tunnels, write.name));
    }),
    ...find("create-tunnel").flatMap((write) =>
      compare("audit event", write.name, combine(write), count(rows.createdTunnels, write.name)),
    ),
    ...find("mint-token").flatMap((write) =>
      compare("token", write.name, combine(write), count(rows.tokens, write.name)),
    ),
  ];
  const acknowledged = writes.filter(({ result }) => result === "acknowledged").length;
  const unknown = writes.filter(({ result }) => result === "unknown").length;
  return toCheckResult(
    "every acknowledged change is there, exactly once",
    differences,
    `${acknowledged} acknowledged changes, ${unknown} without a clear answer`,
  );
}

/** How often a row may be there. */
type Expectation = { least: 0 | 1; most: 0 | 1 };

function combine(creation: WriteEntry, deletion?: WriteEntry["result"]): Expectation {
  if (creation.result === "refused" || deletion === "acknowledged") return { least: 0, most: 0 };
  const isCertain = creation.result === "acknowledged" && deletion !== "unknown";
  return { least: isCertain ? 1 : 0, most: 1 };
}

function count(names: string[], name: string): number {
  return names.filter((each) => each === name).length;
}

function compare(
  what: string,
  name: string,
  { least, most }: Expectation,
  found: number,
): string[] {
  return found >= least && found <= most
    ? []
    : [`the ${what} ${name} is there ${found} times instead of ${most}`];
}
