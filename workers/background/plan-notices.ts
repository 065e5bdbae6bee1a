/** By what rules plans change here, and who is told of it. */
import type { Config } from "../config.ts";
import type { PlanRules } from "../store/plan-changes.ts";
import { sealMail } from "./mail.ts";
import { downgradeMail, overdueMail } from "./mails.ts";

export function planRules(config: Config): PlanRules {
  return {
    unpaidPlan: config.DEFAULT_PLAN,
    hosted: config.HOSTED,
    notices: {
      downgraded: (to, downgrade) => sealMail(config, downgradeMail(to, downgrade, config)),
      overdue: (to, payment) => sealMail(config, overdueMail(to, payment, config)),
    },
  };
}
