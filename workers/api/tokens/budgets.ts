/** The failures that routes for budgets have in common. */
import { createFieldHook } from "../field-codes.ts";

export const requireValidBudget = createFieldHook({ monthlyBudgetUsdCents: "invalid_budget" });
