/** The failures that routes for budgets have in common. */
import { ApiError } from "../../errors.ts";
import { describeField, invalidInput, type ApiContext } from "../route.ts";

type InvalidInput = Parameters<typeof invalidInput>[1];

/** @throws ApiError with a code of its own when the budget is invalid. */
export function requireValidBudget(
  result: ({ success: false } & InvalidInput) | { success: true },
  c: ApiContext,
): undefined {
  if (result.success) return;
  const [issue] = result.error.issues;
  if (issue?.path[0] !== "monthlyBudgetUsdCents") throw invalidInput(c, result);
  const field = { path: "monthlyBudgetUsdCents", message: issue.message };
  throw new ApiError("invalid_budget", describeField(field));
}
