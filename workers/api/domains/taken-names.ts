/** The error for a subdomain that another organization has, or had until recently. */
import { ApiError } from "../../errors.ts";
import type { TakenName } from "../../store/domains/hostnames.ts";

export function subdomainTaken(label: string, { freeAt }: TakenName = { freeAt: null }): ApiError {
  return new ApiError(
    "duplicate_name",
    freeAt === null
      ? `The subdomain ${label} is taken.`
      : `The subdomain ${label} belonged to another organization until recently. It is free from ${freeAt.toISOString()} on.`,
  );
}
