/** Edits the traffic policy of a tunnel: one document, as a form and as JSON. */
import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import type { TrafficPolicy } from "../../../../protocol/schemas/access/policies.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { RequestError } from "../../../api/request.ts";
import { useHasRole } from "../../../app/roles.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../app/query-parameters.ts";
import { ActionButton, Button } from "../../../ui/button.tsx";
import type { JsonError } from "../../../ui/code/json-editor.tsx";
import { ErrorBoundary } from "../../../ui/feedback/error-boundary.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { Skeleton } from "../../../ui/feedback/query-content.tsx";
import { Badge, Section } from "../../../ui/section.tsx";
import { Tabs } from "../../../ui/tabs.tsx";
import { DryRunSection } from "./dry-run-section.tsx";
import { dryRunQuery, useSavePolicy } from "./policy-api.ts";
import { usePolicyDraft, type PolicyDraft } from "./policy-draft.ts";
import type { EditedAction } from "./action-kinds.ts";
import { findSyntaxError, formatPolicy, parsePolicy } from "./policy-document.ts";
import { RuleList } from "./rule-list.tsx";
import { RuleSuggestions } from "./rule-suggestions.tsx";
import { SaveDialog } from "./save-dialog.tsx";

const JsonEditor = lazy(() => import("../../../ui/code/json-editor.tsx"));

export interface PolicyEditorProps {
  tunnel: Tunnel;
  /** The policy that is in force. */
  saved: TrafficPolicy | null;
}

export function PolicyEditor({ tunnel, saved }: PolicyEditorProps) {
  const queries = useQueryClient();
  const { view, from } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const canChange = useHasRole("member");
  const draft = usePolicyDraft(tunnel.id);
  const save = useSavePolicy(tunnel.id);
  const [errors, setErrors] = useState<readonly JsonError[]>([]);
  const [testedText, setTestedText] = useState<string | null>(null);
  const [isSaving, setSaving] = useState(false);
  useReminder(tunnel, draft);

  const savedText = formatPolicy(saved);
  const text = draft.text ?? savedText;
  const { policy } = parsePolicy(text);

  function edit(next: string): void {
    setErrors([]);
    draft.set(next === savedText ? null : next);
  }
  /** Called when the policy in force has changed: the result of a test is no longer about the difference to it. */
  function forgetDraft(): void {
    setErrors([]);
    setTestedText(null);
    draft.set(null);
  }
  const editActions = (actions: EditedAction[]) => edit(formatPolicy({ ...policy, actions }));

  /** @returns whether the API accepts the policy. If not, its errors are shown. */
  async function test(): Promise<boolean> {
    const parsed = parsePolicy(text);
    if (parsed.policy === null && parsed.syntaxError !== null) {
      setErrors([{ path: "", message: parsed.syntaxError.message }]);
      return false;
    }
    try {
      await queries.fetchQuery({ ...dryRunQuery(tunnel.id, text), staleTime: 0 });
    } catch (error) {
      if (!(error instanceof RequestError) || error.fields.length === 0) throw error;
      setErrors(error.fields);
      return false;
    }
    setTestedText(text);
    return true;
  }

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
    <>
      {from !== undefined && canChange && policy !== null && (
        <RuleSuggestions
          requestId={from}
          policy={policy}
          onChange={editActions}
          onClose={() => setParameters({ from: "" })}
        />
      )}
      <Section
        title="Traffic policy"
        actions={
          <>
            {draft.text !== null && <Badge tone="warning">Not saved</Badge>}
            {saved !== null && canChange && (
              <ActionButton
                action={async () => {
                  await save(null, saved);
                  forgetDraft();
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
        <Tabs
          label="Views of the policy"
          selected={view}
          onSelect={(next) => setParameters({ view: next }, { isNewEntry: true })}
          tabs={[
            { id: "form", title: "Form", content: form },
            { id: "json", title: "JSON", content: json },
          ]}
        />
        <Mistakes errors={errors} />
        <div className="actions policy-actions">
          {canChange && (
            <ActionButton
              kind="primary"
              disabled={draft.text === null}
              action={async () => setSaving(await test())}
            >
              Review and save
            </ActionButton>
          )}
          <ActionButton action={test}>Test on recent requests</ActionButton>
          {draft.text !== null && (
            <Button kind="quiet" onClick={() => edit(savedText)}>
              Discard the changes
            </Button>
          )}
        </div>
      </Section>
      {testedText !== null && (
        <DryRunSection tunnel={tunnel} text={testedText} isOutdated={testedText !== text} />
      )}
      {isSaving && (
        <SaveDialog
          tunnel={tunnel}
          saved={saved}
          text={text}
          onSaved={forgetDraft}
          onClose={() => setSaving(false)}
        />
      )}
    </>
  );
}

function Mistakes({ errors }: { errors: readonly JsonError[] }) {
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

/** Says that unsaved changes remain when the user goes to another page. */
function useReminder({ id, name }: Tunnel, { read }: PolicyDraft): void {
  const navigate = useNavigate();
  useEffect(() => {
    return () => {
      if (read() === null || location.pathname === `/tunnels/${id}`) return;
      const act = () =>
        void navigate({ to: "/tunnels/$id", params: { id }, search: { tab: "policy" } });
      notify(`The policy of ${name} has changes that are not saved.`, { label: "Go back", act });
    };
  }, [id]);
}
