/** The dialog that creates a receiver. */
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Receiver, Validator } from "../../../protocol/schemas/webhooks.ts";
import { receiversQuery } from "../../api/receivers.ts";
import { call } from "../../api/session.ts";
import { DialogButton } from "../../ui/forms/dialog.tsx";
import { SelectField, TextField } from "../../ui/forms/fields.tsx";
import { SecretField } from "./secret-field.tsx";
import { VENDOR_OPTIONS, VENDORS } from "./vendors.tsx";

export function NewReceiverButton() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <DialogButton
      button={{ children: "New receiver", kind: "primary" }}
      title="New webhook receiver"
      submit="Create"
      onSubmit={async (value) => {
        const { id } = await call<Receiver>("POST", "/webhook-receivers", {
          name: value("name"),
          validator: value("validator"),
          secret: value("secret").trim(),
        });
        await queries.invalidateQueries(receiversQuery);
        await navigate({ to: "/receivers/$id", params: { id }, search: { tab: "setup" } });
      }}
    >
      <ReceiverFields />
    </DialogButton>
  );
}

function ReceiverFields() {
  const [validator, setValidator] = useState<Validator>("code_host");
  const vendor = VENDORS[validator];
  return (
    <>
      <TextField name="name" label="Name" placeholder="shop" autoComplete="off" />
      <SelectField
        name="validator"
        label="Vendor"
        options={VENDOR_OPTIONS}
        onChoose={(chosen) => setValidator(chosen as Validator)}
        hint={
          <>
            Signs {vendor.signedText} with HMAC-SHA256, in{" "}
            <code>{vendor.headers[0]?.split(":")[0]}</code>.
          </>
        }
      />
      <SecretField label="Secret" vendor={vendor} />
    </>
  );
}
