/** Mints a token with the values of the form. */
import type { MintedToken } from "../../../../protocol/schemas/tokens.ts";
import { call } from "../../../api/session.ts";
import { notifyOfError } from "../../../ui/feedback/notifications.tsx";
import type { GetValue } from "../../../ui/forms/form.tsx";
import { readBudget, setTokenBudget } from "../budget.tsx";

export const LIFETIME_UNITS = ["hours", "days"] as const;
export type LifetimeUnit = (typeof LIFETIME_UNITS)[number];

const DAY_HOURS = 24;

export async function mintToken(value: GetValue): Promise<MintedToken> {
  const minted = await requestToken(value);
  const budget = readBudget(value);
  if (budget === null) return minted;
  try {
    await setTokenBudget(minted.nonce, budget);
    return { ...minted, monthlyBudgetUsdCents: budget };
  } catch (error) {
    // The token exists, and its bytes are shown only once.
    notifyOfError(error);
    return minted;
  }
}

function requestToken(value: GetValue): Promise<MintedToken> {
  const name = value("name");
  const hours = Number(value("lifetime")) * (value("unit") === "days" ? DAY_HOURS : 1);
  if (value("preset") === "master") {
    return call("POST", "/tokens/master", { name, ttl_days: Math.ceil(hours / DAY_HOURS) });
  }
  const project = value("project");
  if (project !== "") {
    const allowed = readPatterns(value("allowed_subdomains"));
    const body = { name, ttl_hours: hours, allowed_subdomains: allowed };
    return call("POST", `/projects/${project}/tokens`, body);
  }
  return call("POST", "/tokens", {
    name,
    ttlHours: hours,
    allowedSubdomains: readPatterns(value("allowedSubdomains")),
    tunnelQuota: Number(value("tunnelQuota")),
    bandwidthLimitMbps: Number(value("bandwidthLimitMbps")),
  });
}

function readPatterns(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
