/** The text of a tunnel's traffic policy while it is edited, with the mistakes that the API has found in it. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { TrafficPolicy } from "../../../../protocol/schemas/access/policies.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { RequestError, type FieldError } from "../../../api/request.ts";
import { useDraft } from "../unsaved-changes.ts";
import type { EditedAction } from "./action-kinds.ts";
import { dryRunQuery } from "./policy-api.ts";
import { formatPolicy, parsePolicy, type EditedPolicy } from "./policy-document.ts";

interface PolicyDraft {
  text: string;
  /** The policy in force when the user began to edit it. */
  base: string;
}

export interface PolicyEditing {
  text: string;
  /** null: the form can't show the text. */
  policy: EditedPolicy | null;
  /** Whether there are unsaved changes. */
  isEdited: boolean;
  /** The policy that was in force when the user began to edit. */
  base: string;
  errors: readonly FieldError[];
  /** The text that was tested last; null: none since the policy in force has changed. */
  testedText: string | null;
  edit: (text: string) => void;
  editActions: (actions: EditedAction[]) => void;
  discard: () => void;
  /** Call it when the policy in force has changed: the result of a test is no longer about the difference to it. */
  forgetDraft: () => void;
  /** Resolves with whether the API accepts the policy. If not, `errors` says why. @throws RequestError for other failures. */
  test: () => Promise<boolean>;
}

/** @param saved the policy that is in force. */
export function usePolicyEditing(tunnel: Tunnel, saved: TrafficPolicy | null): PolicyEditing {
  const queries = useQueryClient();
  const draft = useDraft<PolicyDraft>(tunnel, {
    tab: "policy",
    subject: `The policy of ${tunnel.name}`,
  });
  const [errors, setErrors] = useState<readonly FieldError[]>([]);
  const [testedText, setTestedText] = useState<string | null>(null);
  const savedText = formatPolicy(saved);
  const text = draft.value?.text ?? savedText;
  const base = draft.value?.base ?? savedText;
  const parsed = parsePolicy(text);
  const { policy } = parsed;

  function edit(next: string): void {
    setErrors([]);
    draft.set(next === savedText ? null : { text: next, base });
  }

  function forgetDraft(): void {
    setErrors([]);
    setTestedText(null);
    draft.set(null);
  }

  async function test(): Promise<boolean> {
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

  return {
    text,
    policy,
    isEdited: draft.value !== null,
    base,
    errors,
    testedText,
    edit,
    editActions: (actions) => edit(formatPolicy({ ...policy, actions })),
    discard: () => edit(savedText),
    forgetDraft,
    test,
  };
}
