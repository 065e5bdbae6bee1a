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

interface SaveDialogProps {
  tunnel: Tunnel;
  saved: TrafficPolicy | null;
  /** The edited policy in JSON, which the API has accepted in a dry run. */
  text: string;
  onSaved: () => void;
  onClose: () => void;
}

export function SaveDialog({ tunnel, saved, text, onSaved, onClose }: SaveDialogProps) {
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
        await save(JSON.parse(text), saved);
        onSaved();
      }}
    >
      <p>It applies from the next request. Open streams and WebSockets continue.</p>
      {result !== undefined && result.evaluated > 0 && <DryRunCounts result={result} />}
      <ErrorBoundary>
        <Suspense fallback={<Skeleton lines={6} />}>
          <JsonDifference
            label="Changes of the policy"
            original={formatPolicy(saved)}
            changed={text}
          />
        </Suspense>
      </ErrorBoundary>
    </OpenFormDialog>
  );
}
