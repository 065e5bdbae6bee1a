/** Which gate or rule of the tunnel refused or changed a request, with a link to its settings. */
import { Link } from "@tanstack/react-router";
import type { CaptureDetail, RefusedBy } from "../../../../protocol/schemas/inspector/captures.ts";
import { Badge } from "../../../ui/section.tsx";
import { usePolicyHeaders } from "./policy-headers.ts";

interface Reason {
  text: string;
  /** The tab of the tunnel's page on which the rule can be changed. */
  tab?: "access" | "policy" | "maintenance";
}

const REASONS: Record<RefusedBy, Reason> = {
  ip_allowlist: { text: "IP allowlist", tab: "access" },
  password: { text: "password", tab: "access" },
  sign_in: { text: "sign-in", tab: "access" },
  deny: { text: "denied path", tab: "policy" },
  jwt_validation: { text: "JWT validation", tab: "policy" },
  rate_limit: { text: "rate limit", tab: "policy" },
  maintenance: { text: "maintenance", tab: "maintenance" },
  plan: { text: "plan" },
  api_token: { text: "access token of the API" },
};

export function RuleBadges({ request }: { request: CaptureDetail }) {
  const { tunnel_id: id } = request;
  const policyHeaders = usePolicyHeaders(request);
  return (
    <>
      <RefusalBadge request={request} />
      {policyHeaders.size > 0 && (
        <Badge>
          headers set by{" "}
          <Link to="/tunnels/$id" params={{ id }} search={{ tab: "policy" }}>
            policy
          </Link>
        </Badge>
      )}
    </>
  );
}

function RefusalBadge({ request }: { request: CaptureDetail }) {
  const { refused_by: by, tunnel_id: id } = request;
  if (by === null) return null;
  const { text, tab } = REASONS[by];
  return (
    <Badge tone="warning">
      refused by{" "}
      {tab === undefined ? (
        text
      ) : (
        <Link to="/tunnels/$id" params={{ id }} search={{ tab }}>
          {text}
        </Link>
      )}
    </Badge>
  );
}
