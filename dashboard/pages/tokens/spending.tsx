/** The share of its monthly budget that a token has spent. */
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { Meter } from "../../ui/figures/meter.tsx";
import { formatUsdCents } from "../../ui/numbers.ts";

export function Spending({ token }: { token: Token }) {
  const { name, monthlyBudgetUsdCents: budget, spentUsdCents: spent } = token;
  if (budget === null) {
    return <div className="hint">{formatUsdCents(spent)} this month, no budget</div>;
  }
  if (budget === 0) return <div className="hint">A budget of 0: opens no tunnels</div>;
  return (
    <Meter
      label={`Spent of the monthly budget of ${name}`}
      isLabelHidden
      value={spent}
      max={budget}
      format={formatUsdCents}
      period="this month"
    />
  );
}
