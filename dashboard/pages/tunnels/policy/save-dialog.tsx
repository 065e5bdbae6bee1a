/** The changes of a policy, for review before it is saved. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import type { TrafficPolicy } from "../../../../protocol/schemas/access/policies.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { ErrorBoundary } from "../../../ui/feedback/error-boundary.tsx";
import { Skeleton } from "../../../ui/feedback/skeleton.tsx";
import { OpenFormDialog } from "../../../ui/forms/dialog.tsx";
import { DryRunCounts } from "./dry-run-section.tsx";
import { dryRunQuery, useSavePolicy } from "./policy-api.ts";
import { formatPolicy } from "./policy-document.ts";

const JsonDifference = lazy(() => import("../../../ui/code/json-difference.tsx"));

export interface Review {
  /** The policy in force when the review began. */
  inForce: TrafficPolicy | null;
  /** Whether it has come into force since the user began to edit. */
  isBaseReplaced: boolean;
}

interface SaveDialogProps {
  tunnel: Tunnel;
  review: Review;
  /** The edited policy in JSON, which the API has accepted in a dry run. */
  text: string;
  onSaved: () => void;
  onClose: () => void;
}

export function SaveDialog(props: SaveDialogProps) {
  const { tunnel, review, text, onSaved, onClose } = props;
  const { inForce, isBaseReplaced } = review;
  const save = useSavePolicy(tunnel.id);
  const { data: result } = useQuery({ ...dryRunQuery(tunnel.id, text), enabled: false });
  return (
    <OpenFormDialog
      isOpen
      onClose={onClose}
      title={`Save the policy of ${tunnel.name}?`}
      width="wide"
      submit="Save"
      onSubmit={async () => {
        await save(JSON.parse(text), inForce);
        onSaved();
      }}
    >
      {isBaseReplaced && (
        <p className="notice warning" role="alert">
          The policy was changed since you opened it. If you save, your version replaces the policy
          that is in force now, and the lines that are removed below are lost. To keep them, cancel
          and add them to your version.
        </p>
      )}
      <p>It applies from the next request. Open streams and WebSockets continue.</p>
      {result !== undefined && result.evaluated > 0 && <DryRunCounts result={result} />}
      <ErrorBoundary>
        <Suspense fallback={<Skeleton lines={6} />}>
          <JsonDifference
            label="Changes of the policy"
            original={formatPolicy(inForce)}
            changed={text}
          />
        </Suspense>
      </ErrorBoundary>
    </OpenFormDialog>
  );
}
