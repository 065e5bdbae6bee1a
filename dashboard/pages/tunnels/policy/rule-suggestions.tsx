/** Rules that fit a captured request: `?tab=policy&from=<id of the request>`. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { capturedRequestQuery } from "../../../api/captured-request.ts";
import { Button } from "../../../ui/button.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { Row, Rows, Section } from "../../../ui/section.tsx";
import { DEFAULT_REQUESTS_PER_MINUTE, describeAction, type EditedAction } from "./action-kinds.ts";
import { addActions, type EditedPolicy } from "./policy-document.ts";

interface RuleSuggestionsProps {
  requestId: string;
  policy: EditedPolicy;
  onChange: (actions: EditedAction[]) => void;
  onClose: () => void;
}

export function RuleSuggestions({ requestId, policy, onChange, onClose }: RuleSuggestionsProps) {
  const query = useQuery(capturedRequestQuery(requestId));
  return (
    <Section title="Rules for this request" actions={<Button onClick={onClose}>Close</Button>}>
      <QueryContent query={query} lines={5}>
        {(request) => (
          <>
            <p>
              <Link to="/requests/$id" params={{ id: requestId }} className="policy-request">
                <bdi>{request.method}</bdi> <bdi>{request.path}</bdi>
              </Link>
            </p>
            <Rows>
              {suggestActions(request).map((action) => {
                const actions = addActions(policy, [action]);
                const isNew = actions.length > policy.actions.length;
                const text = describeAction(action);
                return (
                  <Row
                    key={text}
                    actions={
                      <Button
                        aria-label={`Add the rule ${text}`}
                        disabled={!isNew}
                        onClick={() => onChange(actions)}
                      >
                        {isNew ? "Add" : "In the policy"}
                      </Button>
                    }
                  >
                    <bdi>{text}</bdi>
                  </Row>
                );
              })}
            </Rows>
            <p className="hint policy-note">
              Policies don't decide by address. To admit only some addresses, use the{" "}
              <Link to="." search={{ tab: "access" }}>
                IP allowlist
              </Link>
              .
            </p>
          </>
        )}
      </QueryContent>
    </Section>
  );
}

/** The actions that would refuse or limit such a request. */
function suggestActions({ path }: CaptureDetail): EditedAction[] {
  const [first = ""] = path.split("/").slice(1);
  const prefixes = new Set([path, `/${first}/`]);
  // A rule for "/" would deny every request.
  for (const prefix of ["/", "//"]) prefixes.delete(prefix);
  return [
    ...[...prefixes]
      .filter((prefix) => path.startsWith(prefix))
      .map((prefix) => ({ kind: "deny", path_prefix: prefix })),
    { kind: "rate_limit", requests_per_minute: DEFAULT_REQUESTS_PER_MINUTE, per_client_ip: true },
    { kind: "jwt_validation" },
  ];
}
