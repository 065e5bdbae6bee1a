import type { Rejected } from "../tunnel.ts";

const ADVICE: Record<string, string> = {
  unauthorized: "Get a new token with `underpass login`.",
  BUDGET_EXCEEDED: "An owner or admin can raise the token's monthly budget.",
  duplicate_name: "Choose another name with --subdomain, or stop the other agent.",
  forbidden: "The token is for other names; see its allowed subdomains.",
  quota_exceeded: "Stop another tunnel of this token first.",
  replaced: "A newer agent with the same token serves this name now.",
  tunnel_deleted: "Run the command again to make a new tunnel.",
  tunnel_expired: "Run the command again to make a new tunnel, for as long as the plan allows.",
  unsupported_version: "Update the agent: npm install -g underpass",
};

/** Why the tunnel ended for good, and what to do about it. */
export function rejectionText({ reason, message }: Rejected): string {
  const advice = ADVICE[reason];
  return `${reason}: ${message}${advice === undefined ? "" : `\n${advice}`}`;
}
