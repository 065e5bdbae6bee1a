/** Removes a domain. The user must type the name of a verified one. */
import { useQueryClient } from "@tanstack/react-query";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { domainsQuery } from "../../api/domains.ts";
import { call } from "../../api/session.ts";
import { notify } from "../../ui/feedback/notifications.tsx";
import { OpenConfirmDialog } from "../../ui/forms/dialog.tsx";

interface RemoveDialogProps {
  domain: CustomDomain;
  isOpen: boolean;
  onClose: () => void;
}

export function RemoveDialog({ domain, ...dialog }: RemoveDialogProps) {
  const { id, domain: name, verified } = domain;
  const queries = useQueryClient();
  return (
    <OpenConfirmDialog
      {...dialog}
      title={`Remove ${name}?`}
      submit="Remove"
      name={verified ? name : undefined}
      onSubmit={async () => {
        await call("DELETE", `/domains/${id}`);
        await queries.invalidateQueries(domainsQuery);
        notify(`${name} was removed.`);
      }}
    >
      <p>
        {verified
          ? "It leads to no tunnel from then on, and any organization can claim it. To use it again, you verify it with another record."
          : "If you add it again, it gets another record."}
      </p>
    </OpenConfirmDialog>
  );
}
