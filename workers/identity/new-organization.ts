/** With what an organization starts: the operator's settings decide. */
import type { Config } from "../config/config.ts";
import type { OrganizationTerms } from "../store/organizations/organizations.ts";
import { DAY_MS } from "../../shared/time.ts";

/** The trial is for a person's first one. */
export function getAdditionalOrganizationTerms(config: Config): OrganizationTerms {
  return { ...getFirstOrganizationTerms(config), trialEndsAt: null };
}

export function getFirstOrganizationTerms(config: Config): OrganizationTerms {
  const { DEFAULT_PLAN, TRIAL_DAYS, REQUIRE_ORG_APPROVAL } = config;
  return {
    plan: DEFAULT_PLAN,
    approvalStatus: REQUIRE_ORG_APPROVAL ? "pending" : "approved",
    trialEndsAt: TRIAL_DAYS === 0 ? null : new Date(Date.now() + TRIAL_DAYS * DAY_MS),
  };
}
