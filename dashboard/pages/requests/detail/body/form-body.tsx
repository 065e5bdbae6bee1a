/** The fields of a URL-encoded form. */
import { useMemo } from "react";
import { FIELDS_MAX, parseForm } from "../../decode/form.ts";
import { decodeText } from "../../decode/text.ts";
import { FieldTable } from "../field-table.tsx";

interface FormBodyProps {
  bytes: Uint8Array;
  charset: string | undefined;
}

export function FormBody({ bytes, charset }: FormBodyProps) {
  const { fields, isCut } = useMemo(
    () => parseForm(decodeText(bytes, charset).text),
    [bytes, charset],
  );
  return (
    <>
      <FieldTable caption="Fields of the form" rows={fields} />
      {isCut && <p className="hint">Only the first {FIELDS_MAX} fields are shown.</p>}
    </>
  );
}
