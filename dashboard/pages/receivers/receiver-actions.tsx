/** The actions on a receiver: a new secret, and its deletion. */
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReceiverState } from "../../../protocol/schemas/webhooks.ts";
import { receiverQuery, receiversQuery } from "../../api/receivers.ts";
import { call } from "../../api/session.ts";
import { ConfirmButton, DialogButton } from "../../ui/forms/dialog.tsx";
import { SelectField } from "../../ui/forms/fields.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { formatCount } from "../../ui/numbers.ts";
import { SecretField } from "./secret-field.tsx";
import { VENDORS } from "./vendors.tsx";

/** How long both secrets are accepted. The values are hours. */
const OVERLAPS = [
  { value: "24", label: "for 24 hours" },
  { value: "1", label: "for 1 hour" },
  { value: "168", label: "for 7 days" },
  { value: "0", label: "no longer" },
];

interface Props {
  receiver: ReceiverState;
}

export function RotateSecretButton({ receiver: { id, validator } }: Props) {
  const queries = useQueryClient();
  return (
    <DialogButton
      button={{ children: "Rotate the secret" }}
      title="Rotate the secret"
      submit="Rotate"
      onSubmit={async (value) => {
        await call("POST", `/webhook-receivers/${id}/rotate`, {
          secret: value("secret").trim(),
          overlapHours: Number(value("overlapHours")),
        });
        await queries.invalidateQueries(receiverQuery(id));
        notify("The new secret is in force.");
      }}
    >
      <SecretField label="New secret" vendor={VENDORS[validator]} />
      <SelectField
        name="overlapHours"
        label="Accept the previous secret"
        options={OVERLAPS}
        hint="During this time, deliveries that the vendor still signs with the previous secret are accepted too."
      />
    </DialogButton>
  );
}

export function DeleteReceiverButton({ receiver: { id, name, kept } }: Props) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <ConfirmButton
      button={{ children: "Delete" }}
      title="Delete the receiver?"
      submit="Delete the receiver"
      name={name}
      onSubmit={async () => {
        await call("DELETE", `/webhook-receivers/${id}`);
        await navigate({ to: "/receivers" });
        queries.removeQueries({ queryKey: receiverQuery(id).queryKey });
        await queries.invalidateQueries(receiversQuery);
        notify(`${name} was deleted.`);
      }}
    >
      <p>
        Its stored deliveries ({formatCount(kept)}) are deleted too, and the vendor gets errors from
        now on.
      </p>
    </ConfirmButton>
  );
}
