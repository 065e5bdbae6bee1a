/** The settings that a change of an organization's plan depends on, and the mails that report a change. */
import type { Config } from "../config/config.ts";
import type { PlanRules } from "../store/billing/plan-changes.ts";
import { toOutboxMail } from "../integrations/mail/mail.ts";
import { downgradeMail, overdueMail } from "../integrations/mail/mails.ts";

export function buildPlanRules(config: Config): PlanRules {
  return {
    unpaidPlan: config.DEFAULT_PLAN,
    isHosted: config.HOSTED,
    notices: {
      downgraded: (to, downgrade) => toOutboxMail(config, downgradeMail(to, downgrade, config)),
      overdue: (to, payment) => toOutboxMail(config, overdueMail(to, payment, config)),
    },
  };
}
