/** The tokens, newest first. */
import { useState } from "react";
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { isValidToken } from "../../api/organization/tokens.ts";
import { useSetQueryParameters } from "../../app/query-parameters.ts";
import { Button } from "../../ui/button.tsx";
import { formatCount, formatQuantity } from "../../ui/numbers.ts";
import { Rows, Section } from "../../ui/section.tsx";
import { ShowMore } from "../../ui/show-more.tsx";
import { TokenRow } from "./token-row.tsx";

const SHOWN_ROWS = 50;

interface TokenListProps {
  tokens: readonly Token[];
  /** How many of all tokens were revoked or have expired. */
  endedCount: number;
}

export function TokenList({ tokens, endedCount }: TokenListProps) {
  const [shownCount, setShownCount] = useState(SHOWN_ROWS);
  return (
    <Section title={formatQuantity(tokens.length, "token")}>
      {tokens.length === 0 ? (
        <NoMatch endedCount={endedCount} />
      ) : (
        <Rows>
          {tokens.slice(0, shownCount).map((token) => (
            // The row of a token that has just been revoked is another one, without actions, so that the focus moves on.
            <TokenRow key={`${token.id} ${isValidToken(token)}`} token={token} />
          ))}
        </Rows>
      )}
      <ShowMore
        hiddenCount={tokens.length - shownCount}
        step={SHOWN_ROWS}
        onShow={() => setShownCount(shownCount + SHOWN_ROWS)}
      />
    </Section>
  );
}

function NoMatch({ endedCount }: { endedCount: number }) {
  const setParameters = useSetQueryParameters();
  return (
    <p>
      No token matches.{" "}
      <Button
        kind="link"
        onClick={() => setParameters({ text: "", kind: "", project: "", state: "all" })}
      >
        Show all tokens
      </Button>
      {endedCount > 0 &&
        `, including the ${formatCount(endedCount)} that were revoked or have expired`}
      .
    </p>
  );
}
