/** Edits the traffic policy of a tunnel: one document, as a form and as JSON. */
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import type { TrafficPolicy } from "../../../../protocol/schemas/access/policies.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { useHasRole } from "../../../app/roles.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../app/query-parameters.ts";
import { ActionButton, Button } from "../../../ui/button.tsx";
import { ErrorBoundary } from "../../../ui/feedback/error-boundary.tsx";
import { Skeleton } from "../../../ui/feedback/skeleton.tsx";
import { Badge, Section } from "../../../ui/section.tsx";
import { Tabs } from "../../../ui/tabs.tsx";
import { DryRunSection } from "./dry-run-section.tsx";
import { fetchPolicy, useSavePolicy } from "./policy-api.ts";
import { findSyntaxError, formatPolicy } from "./policy-document.ts";
import { RuleList } from "./rule-list.tsx";
import { RuleSuggestions } from "./rule-suggestions.tsx";
import { SaveDialog, type Review } from "./save-dialog.tsx";
import { usePolicyEditing, type PolicyEditing } from "./use-policy-editing.ts";
import type { FieldError } from "../../../api/request.ts";

const JsonEditor = lazy(() => import("../../../ui/code/json-editor.tsx"));

interface PolicyEditorProps {
  tunnel: Tunnel;
  /** The policy that is in force. */
  saved: TrafficPolicy | null;
}

export function PolicyEditor({ tunnel, saved }: PolicyEditorProps) {
  const { from } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const canChange = useHasRole("member");
  const queries = useQueryClient();
  const save = useSavePolicy(tunnel.id);
  const editing = usePolicyEditing(tunnel, saved);
  const { text, policy, errors, testedText } = editing;
  const [review, setReview] = useState<Review | null>(null);

  async function startReview(): Promise<void> {
    if (!(await editing.test())) return;
    const inForce = await fetchPolicy(queries, tunnel.id);
    setReview({ inForce, isBaseReplaced: formatPolicy(inForce) !== editing.base });
  }

  return (
    <>
      {from !== undefined && canChange && policy !== null && (
        <RuleSuggestions
          requestId={from}
          policy={policy}
          onChange={editing.editActions}
          onClose={() => setParameters({ from: "" })}
        />
      )}
      <Section
        title="Traffic policy"
        actions={
          <>
            {editing.isEdited && <Badge tone="warning">Not saved</Badge>}
            {saved !== null && canChange && (
              <ActionButton
                action={async () => {
                  await save(null, saved);
                  editing.forgetDraft();
                }}
              >
                Remove the policy
              </ActionButton>
            )}
          </>
        }
      >
        <p className="hint">
          Denied paths are checked first, then the token, then the rate limit, whatever the order of
          the rules. Headers are set on requests that pass. Passwords, sign-in and addresses are set
          under{" "}
          <Link to="." search={{ tab: "access" }}>
            Access
          </Link>
          .
        </p>
        <PolicyViews editing={editing} canChange={canChange} />
        <Mistakes errors={errors} />
        <div className="actions policy-actions">
          {canChange && (
            <ActionButton kind="primary" isUnavailable={!editing.isEdited} action={startReview}>
              Review and save
            </ActionButton>
          )}
          <ActionButton action={editing.test}>Test on recent requests</ActionButton>
          {editing.isEdited && (
            <Button kind="quiet" onClick={editing.discard}>
              Discard the changes
            </Button>
          )}
        </div>
      </Section>
      {testedText !== null && (
        <DryRunSection tunnel={tunnel} text={testedText} isOutdated={testedText !== text} />
      )}
      {review !== null && (
        <SaveDialog
          tunnel={tunnel}
          review={review}
          text={text}
          onSaved={editing.forgetDraft}
          onClose={() => setReview(null)}
        />
      )}
    </>
  );
}

interface PolicyViewsProps {
  editing: PolicyEditing;
  canChange: boolean;
}

/** The form and the JSON of the same text. */
function PolicyViews({ editing, canChange }: PolicyViewsProps) {
  const { text, policy, errors, edit, editActions } = editing;
  const { view } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const form =
    policy === null ? (
      <p className="notice">The form can't show this text. Correct it as JSON first.</p>
    ) : (
      <RuleList policy={policy} errors={errors} canChange={canChange} onChange={editActions} />
    );
  const json = (
    <ErrorBoundary>
      <Suspense fallback={<Skeleton lines={8} />}>
        <JsonEditor
          label="Traffic policy in JSON"
          text={text}
          errors={errors}
          findSyntaxError={findSyntaxError}
          isReadOnly={!canChange}
          onChange={edit}
        />
      </Suspense>
    </ErrorBoundary>
  );
  return (
    <Tabs
      label="Views of the policy"
      selected={view}
      onSelect={(next) => setParameters({ view: next }, { isNewEntry: true })}
      tabs={[
        { id: "form", title: "Form", content: form },
        { id: "json", title: "JSON", content: json },
      ]}
    />
  );
}

function Mistakes({ errors }: { errors: readonly FieldError[] }) {
  return (
    <div role="alert" className="policy-mistakes">
      {errors.map(({ path, message }) => (
        <p key={`${path} ${message}`}>
          {path === "" ? message : `${describePath(path)} ${message}.`}
        </p>
      ))}
    </div>
  );
}

/** `actions[1].path_prefix` becomes `Rule 2: path_prefix`. */
function describePath(path: string): string {
  const [, index, field] = /^actions\[(\d+)\]\.?(.*)$/.exec(path) ?? [];
  return index === undefined ? path : `Rule ${Number(index) + 1}: ${field}`;
}
