/** The output of `underpass tokens` for people. */
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { isTokenValid, NONCE_SHOWN_CHARS } from "../../management/find-token.ts";
import { formatExpiry } from "../format/format-relative-time.ts";
import { formatUsd } from "../format/format-usd.ts";
import { getTerminalWidth, Table } from "../format/table.ts";

export function createTokenTable(): Table {
  const headers = ["NAME", "NONCE", "KIND", "NAMES", "PROJECT", "SPENT / BUDGET", "EXPIRES"];
  return new Table(
    headers.map((header) => ({ header, isCutLast: header === "NONCE" })),
    getTerminalWidth(),
  );
}

export function formatTokenRow(token: Token): string[] {
  const { name, nonce, kind, allowedSubdomains, projectSlug, expiresAt, revoked } = token;
  const expiry = formatExpiry(new Date(expiresAt * 1000).toISOString(), Date.now());
  const nonceIsCut = getTerminalWidth() !== undefined;
  return [
    name,
    nonceIsCut ? nonce.slice(0, NONCE_SHOWN_CHARS) : nonce,
    kind,
    kind === "master" ? "-" : formatNames(allowedSubdomains),
    projectSlug ?? "all",
    formatBudget(token),
    isTokenValid(token) ? expiry : revoked ? "revoked" : "expired",
  ];
}

/** Describes the permissions of a new token in one sentence. */
export function describeToken(token: Token): string {
  const { name, nonce, allowedSubdomains, projectSlug, monthlyBudgetUsdCents, expiresAt } = token;
  const parts = [
    `for ${formatNames(allowedSubdomains)}${allowedSubdomains.length === 0 ? " names" : ""}`,
    projectSlug === null ? [] : `in the project ${projectSlug}`,
    monthlyBudgetUsdCents === null ? [] : `up to ${formatUsd(monthlyBudgetUsdCents)} a month`,
    `until ${new Date(expiresAt * 1000).toISOString()}`,
  ].flat();
  return `The token ${name} (${nonce}) is valid ${parts.join(", ")}.`;
}

function formatNames(patterns: string[]): string {
  return patterns.length === 0 || patterns.includes("*") ? "all" : patterns.join(", ");
}

function formatBudget({ spentUsdCents, monthlyBudgetUsdCents }: Token): string {
  const budget = monthlyBudgetUsdCents === null ? "-" : formatUsd(monthlyBudgetUsdCents);
  return `${formatUsd(spentUsdCents)} / ${budget}`;
}
