/** The plan, approval and trial of a new organization, as the operator's settings say. */
import type { Config } from "../config/config.ts";
import type { OrganizationTerms } from "../store/organizations/organizations.ts";
import { DAY_MS } from "../../shared/time.ts";

/** Only a person's first organization gets a trial. */
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
