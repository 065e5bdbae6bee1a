/** One token: what it may do, until when, and what it has spent. */
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { isValidToken } from "../../api/organization/tokens.ts";
import { useHasRole } from "../../app/roles.ts";
import { Button } from "../../ui/button.tsx";
import { formatCount, formatQuantity } from "../../ui/numbers.ts";
import { Badge, Detail, Row } from "../../ui/section.tsx";
import { RelativeTime } from "../../ui/time.tsx";
import { Spending } from "./spending.tsx";
import { MintedBy } from "./minted-by.tsx";
import { TokenMenu } from "./token-menu.tsx";

/** Enough to tell the tokens of an organization apart, and for `underpass tokens revoke`. */
const NONCE_SHOWN_CHARS = 8;

export function TokenRow({ token }: { token: Token }) {
  const { name, nonce, kind, projectSlug, issuedAt, expiresAt, revoked } = token;
  const isValid = isValidToken(token);
  const canChange = useHasRole("member");
  const menu = isValid ? <TokenMenu token={token} /> : <NoMenu />;
  return (
    <Row actions={canChange ? menu : undefined}>
      <div className="token-row">
        <div>
          <strong>
            <bdi>{name}</bdi>
          </strong>
          {kind === "master" && <Badge tone="warning">master key</Badge>}
          {projectSlug !== null && <Badge>project {projectSlug}</Badge>}
          {revoked && <Badge tone="bad">revoked</Badge>}
          {!revoked && !isValid && <Badge>expired</Badge>}
          <Detail>{describeScope(token)}</Detail>
          <Detail>
            <code title={nonce}>{nonce.slice(0, NONCE_SHOWN_CHARS)}</code> · minted{" "}
            <RelativeTime timestamp={toTimestamp(issuedAt)} />
            <MintedBy token={token} />
            {!revoked && (
              <>
                {isValid ? " · expires " : " · expired "}
                <RelativeTime timestamp={toTimestamp(expiresAt)} />
              </>
            )}
          </Detail>
        </div>
        <Spending token={token} />
      </div>
    </Row>
  );
}

/** As wide as a menu, so that the columns of all rows are aligned. */
function NoMenu() {
  return (
    <Button kind="quiet" className="no-token-menu" disabled>
      ⋯
    </Button>
  );
}

function toTimestamp(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString();
}

/** The rights of the token: `Only pr-*, demo · 5 tunnels · 100 Mbit/s`. */
function describeScope(token: Token): string {
  const { kind, allowedSubdomains, tunnelQuota, bandwidthLimitMbps } = token;
  if (kind === "master") return "Mints tokens for projects; opens no tunnels";
  const isEveryName = allowedSubdomains.length === 0 || allowedSubdomains.includes("*");
  return [
    isEveryName ? "Every name" : `Only ${allowedSubdomains.join(", ")}`,
    formatQuantity(tunnelQuota, "tunnel"),
    `${formatCount(bandwidthLimitMbps)} Mbit/s`,
  ].join(" · ");
}
