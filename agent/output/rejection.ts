import type { Rejected } from "../tunnel.ts";

const ADVICE: Record<string, string> = {
  unauthorized: "Get a new token with `underpass login`.",
  BUDGET_EXCEEDED: "An owner or admin can raise the token's monthly budget.",
  duplicate_name: "Choose another name with --subdomain, or stop the other agent.",
  forbidden: "The token is for other names; see its allowed subdomains.",
  quota_exceeded: "Stop another tunnel of this token first.",
  replaced: "A newer agent with the same token serves this name now.",
  unsupported_version: "Update the agent: npm install -g underpass",
};

/** Why the tunnel ended for good, and what to do about it. */
export function rejectionText({ reason, message }: Rejected): string {
  const advice = ADVICE[reason];
  return `${reason}: ${message}${advice === undefined ? "" : `\n${advice}`}`;
}
