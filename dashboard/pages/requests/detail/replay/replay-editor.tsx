/** A form that changes a captured request before it is sent again. */
import { useMemo } from "react";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import type { ReplayRequest } from "../../../../../protocol/schemas/inspector/replays.ts";
import { Button } from "../../../../ui/button.tsx";
import { SelectField, TextAreaField, TextField } from "../../../../ui/forms/fields.tsx";
import { Form } from "../../../../ui/forms/form.tsx";
import { toEditedRequest, toReplayRequest, type BodyFormat } from "./replay-changes.ts";

interface ReplayEditorProps {
  request: CaptureDetail;
  onReplay: (changes: ReplayRequest) => Promise<void>;
  onCancel: () => void;
}

export function ReplayEditor({ request, onReplay, onCancel }: ReplayEditorProps) {
  const original = useMemo(() => toEditedRequest(request), [request]);
  return (
    <section className="replay-editor" aria-label="Edit and replay">
      <Form
        submit="Send"
        beside={<Button onClick={onCancel}>Cancel</Button>}
        onSubmit={(value) =>
          onReplay(
            toReplayRequest(request, {
              method: value("method").trim(),
              path: value("path").trim(),
              query: value("query").trim(),
              headers: value("headers"),
              body: value("body").replaceAll("\r\n", "\n"),
              format: value("format") as BodyFormat,
            }),
          )
        }
      >
        <div className="replay-target">
          <TextField
            name="method"
            label="Method"
            defaultValue={original.method}
            autoFocus
            autoComplete="off"
            spellCheck={false}
          />
          <TextField
            name="path"
            label="Path"
            defaultValue={original.path}
            autoComplete="off"
            spellCheck={false}
          />
          <TextField
            name="query"
            label="Query"
            required={false}
            defaultValue={original.query}
            autoComplete="off"
            spellCheck={false}
          />
        </div>
        <TextAreaField
          name="headers"
          label="Headers"
          hint="One per line, as in “accept: text/html”. Connection headers are generated, and redacted headers are not sent unless you add them."
          required={false}
          defaultValue={original.headers}
          spellCheck={false}
        />
        <TextAreaField
          name="body"
          label="Body"
          required={false}
          defaultValue={original.body}
          spellCheck={false}
          {...(request.truncated.request && {
            hint: "The stored body is not complete: it is sent only if you change it.",
          })}
        />
        <SelectField
          name="format"
          label="Body format"
          chosen={original.format}
          options={[
            { value: "text", label: "Text" },
            { value: "base64", label: "Base64" },
          ]}
        />
      </Form>
    </section>
  );
}
