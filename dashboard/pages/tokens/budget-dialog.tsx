/** The monthly budget of a token. */
import { useQueryClient } from "@tanstack/react-query";
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { tokensQuery } from "../../api/organization/tokens.ts";
import { OpenFormDialog } from "../../ui/forms/dialog.tsx";
import { notify, notifyOfError } from "../../ui/feedback/notifications.tsx";
import { formatUsdCents } from "../../ui/numbers.ts";
import { BudgetField, readBudget, setTokenBudget } from "./budget.tsx";

interface BudgetDialogProps {
  token: Token;
  isOpen: boolean;
  onClose: () => void;
}

export function BudgetDialog({ token, ...dialog }: BudgetDialogProps) {
  const { name, nonce, monthlyBudgetUsdCents: previous, spentUsdCents: spent } = token;
  const queries = useQueryClient();
  async function save(budget: number | null): Promise<void> {
    await setTokenBudget(nonce, budget);
    await queries.invalidateQueries(tokensQuery);
  }
  return (
    <OpenFormDialog
      {...dialog}
      title={`Budget of ${name}`}
      submit="Save"
      onSubmit={async (value) => {
        const budget = readBudget(value);
        await save(budget);
        const text = budget === null ? "no budget" : `a budget of ${formatUsdCents(budget)}`;
        notify(`${name} now has ${text}.`, {
          label: "Undo",
          act: () => void save(previous).catch(notifyOfError),
        });
      }}
    >
      <p>
        It has spent {formatUsdCents(spent)} this month. When it has spent its budget, its agents
        are disconnected until the month ends (UTC) or the budget is raised.
      </p>
      <BudgetField budget={previous} />
    </OpenFormDialog>
  );
}
