/** What an experiment did, and the results of its checks, as lines for the terminal. */
import type { CheckResult } from "./checks/check.ts";
import type { History } from "./history.ts";

export function formatReport(history: History, checks: CheckResult[]): string[] {
  const faults = history.list("fault");
  const kinds = Map.groupBy(faults, ({ fault, skipped }) =>
    skipped === undefined ? fault.kind : "skipped",
  );
  const requests = Map.groupBy(history.list("request"), ({ outcome }) => outcome);
  const refusals = Map.groupBy(
    history.list("request").filter(({ outcome }) => outcome === "refused"),
    ({ detail = "" }) => detail,
  );
  const writes = Map.groupBy(history.list("write"), ({ result }) => result);
  const conversations = Map.groupBy(history.list("conversation"), ({ over }) => over);
  return [
    `faults: ${countGroups(kinds)}`,
    `requests: ${countGroups(requests)}`,
    `errors of the service: ${countGroups(refusals)}`,
    `changes through the API: ${countGroups(writes)}`,
    `conversations: ${countGroups(conversations)}`,
    ...checks.map(({ name, passed, detail }) => `${passed ? "PASS" : "FAIL"}  ${name} (${detail})`),
  ];
}

function countGroups(groups: Map<string, unknown[]>): string {
  const texts = [...groups].map(([name, entries]) => `${entries.length} ${name}`);
  return texts.length === 0 ? "none" : texts.join(", ");
}
