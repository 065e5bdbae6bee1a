/** A monthly budget in forms: the user types US dollars, and the API has cents. */
import { MONTHLY_BUDGET_MAX_USD_CENTS } from "../../../protocol/limits.ts";
import { call } from "../../api/session.ts";
import { TextField } from "../../ui/forms/fields.tsx";
import type { GetValue } from "../../ui/forms/form.tsx";

interface BudgetFieldProps {
  /** In US cents; null: no limit. */
  budget: number | null;
}

export function BudgetField({ budget }: BudgetFieldProps) {
  return (
    <TextField
      name="budget_usd"
      label="Monthly budget (USD)"
      type="number"
      min={0}
      max={MONTHLY_BUDGET_MAX_USD_CENTS / 100}
      step={0.01}
      required={false}
      defaultValue={budget === null ? "" : String(budget / 100)}
      hint="Leave empty for no limit. With 0, it opens no tunnels."
    />
  );
}

/** @returns US cents; null: no limit. */
export function readBudget(value: GetValue): number | null {
  const text = value("budget_usd").trim();
  return text === "" ? null : Math.round(Number(text) * 100);
}

/** @param monthlyBudgetUsdCents null: no limit. */
export async function setTokenBudget(
  nonce: string,
  monthlyBudgetUsdCents: number | null,
): Promise<void> {
  await call("PUT", `/tokens/${nonce}/budget`, { monthlyBudgetUsdCents });
}
