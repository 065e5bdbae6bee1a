/** /tokens: the capability tokens with which agents open tunnels. The filters are in the URL. */
import { useQuery } from "@tanstack/react-query";
import { isValidToken, tokensQuery } from "../../api/organization/tokens.ts";
import { useQueryParameters } from "../../app/query-parameters.ts";
import { useHasRole } from "../../app/roles.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { getSetupCommands } from "../../ui/text/agent-command.ts";
import { EmptyState } from "../../ui/feedback/empty-state.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { MintTokenButton } from "./minting/mint-token-button.tsx";
import { NewTokenProvider } from "./minting/new-token-dialog.tsx";
import { TokenFilterBar } from "./token-filter-bar.tsx";
import { TokenList } from "./token-list.tsx";
import { filterTokens } from "./token-filter.ts";
import "./tokens.css";

export function Page() {
  return (
    <NewTokenProvider>
      <TokensPage />
    </NewTokenProvider>
  );
}

function TokensPage() {
  const canMint = useHasRole("member");
  const tokens = useQuery(tokensQuery);
  const search = useQueryParameters();
  return (
    <PageFrame
      title="Tokens"
      about="Agents open tunnels with a token. Each machine has its own, so that one can be revoked alone."
      actions={canMint ? <MintTokenButton /> : undefined}
    >
      <QueryContent query={tokens} lines={8}>
        {(list) =>
          list.length === 0 ? (
            <NoTokens />
          ) : (
            <>
              <TokenFilterBar tokens={list} />
              <TokenList
                key={JSON.stringify(search)}
                tokens={filterTokens(list, search)}
                endedCount={list.filter((token) => !isValidToken(token)).length}
              />
            </>
          )
        }
      </QueryContent>
      <CommandLine
        commands={["tokens"]}
        changes={["tokens mint ci --output ci.token"]}
        requests={[
          { label: "List the tokens", path: "/tokens" },
          { label: "Mint a token", method: "POST", path: "/tokens", body: { name: "ci" } },
        ]}
      />
    </PageFrame>
  );
}

function NoTokens() {
  const title = "No machine has a token yet";
  if (!useHasRole("member")) return <EmptyState title={title} />;
  return (
    <EmptyState title={title} commands={getSetupCommands()}>
      <p>Log in on a machine and approve it in your browser, or mint a token for it here.</p>
    </EmptyState>
  );
}
