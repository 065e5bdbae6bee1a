/** The errors for subdomains that an organization can't have. */
import { findReservedLabelError } from "../../../protocol/names.ts";
import { ApiError } from "../../errors.ts";
import type { TakenName } from "../../store/domains/hostnames.ts";

/** @throws ApiError for a label that no organization can have. */
export function requireUnreservedLabel(label: string): void {
  const labelError = findReservedLabelError(label);
  if (labelError === null) return;
  throw new ApiError("duplicate_name", `The subdomain ${label} ${labelError}.`);
}

/** For a name that another tunnel or organization has, or that another organization had until recently. */
export function subdomainTaken(label: string, { freeAt }: TakenName): ApiError {
  return new ApiError(
    "duplicate_name",
    freeAt === null
      ? `The subdomain ${label} is taken.`
      : `The subdomain ${label} belonged to another organization until recently. It is reserved until ${freeAt.toISOString()}.`,
  );
}
