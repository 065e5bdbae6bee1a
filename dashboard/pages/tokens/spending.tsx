/** What a token has spent of its monthly budget. */
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { formatUsdCents } from "../../ui/numbers.ts";

/** From this part of the budget on, the bar is yellow. */
const NEARLY_SPENT_RATIO = 0.8;

export function Spending({ token }: { token: Token }) {
  const { name, monthlyBudgetUsdCents: budget, spentUsdCents: spent } = token;
  if (budget === null) {
    return <div className="hint">{formatUsdCents(spent)} this month, no budget</div>;
  }
  const ratio = budget === 0 ? 1 : Math.min(spent / budget, 1);
  const level = ratio >= 1 ? "bad" : ratio >= NEARLY_SPENT_RATIO ? "warning" : "good";
  return (
    <div>
      <div className="hint">
        {budget === 0 ? (
          "A budget of 0: opens no tunnels"
        ) : (
          <>
            {formatUsdCents(spent)} of {formatUsdCents(budget)} this month
            {ratio >= 1 && <strong className="spent">spent</strong>}
          </>
        )}
      </div>
      <div
        className="spending-bar"
        role="meter"
        aria-label={`Spent of the monthly budget of ${name}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(ratio * 100)}
      >
        <div className={level} style={{ width: `${ratio * 100}%` }} />
      </div>
    </div>
  );
}
