/** Sends a test delivery to the receiver: from the browser, or with a script. */
import { useQueryClient } from "@tanstack/react-query";
import type { ReceiverState } from "../../../../protocol/schemas/webhooks.ts";
import { receiverQuery } from "../../../api/receivers.ts";
import { RequestError } from "../../../api/request.ts";
import { useSetQueryParameters } from "../../../app/query-parameters.ts";
import { TextAreaField, TextField } from "../../../ui/forms/fields.tsx";
import { Form } from "../../../ui/forms/form.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { Section } from "../../../ui/section.tsx";
import { CodeBlock } from "../../../ui/text/code-block.tsx";
import { canSign, formatTestScript, SAMPLE_BODY, sendTestDelivery } from "./test-delivery.ts";

export function TestTab({ receiver }: { receiver: ReceiverState }) {
  return (
    <div className="receiver-columns">
      <Section title="Send a test delivery">
        <p>It is stored and forwarded as any other delivery.</p>
        {canSign ? (
          <TestForm receiver={receiver} />
        ) : (
          <p className="notice warning">
            Browsers sign only on pages that were loaded over HTTPS or from this machine. Use the
            script.
          </p>
        )}
      </Section>
      <Section title="The same in a shell">
        <CodeBlock label="Script that sends a signed delivery">
          {formatTestScript(receiver)}
        </CodeBlock>
      </Section>
    </div>
  );
}

function TestForm({ receiver }: { receiver: ReceiverState }) {
  const queries = useQueryClient();
  const setParameters = useSetQueryParameters();
  async function send(secret: string, body: string): Promise<void> {
    await sendTestDelivery(receiver, secret, body).catch((error: unknown) => {
      throw error instanceof RequestError && error.code === "unauthorized"
        ? new RequestError(
            {
              error: "invalid_request",
              message: "The receiver has another secret.",
              fields: [{ path: "secret", message: "This is not the secret of the receiver." }],
            },
            error.requestId,
          )
        : error;
    });
    await queries.invalidateQueries(receiverQuery(receiver.id));
    const act = () => setParameters({ tab: "deliveries" });
    notify("The delivery was accepted.", { label: "Show it", act });
  }
  return (
    <Form submit="Sign and send" onSubmit={(value) => send(value("secret"), value("body"))}>
      <TextField
        name="secret"
        label="Secret of the receiver"
        autoComplete="off"
        spellCheck={false}
        hint="This page signs the body with it, and neither sends nor stores it."
      />
      <TextAreaField
        name="body"
        label="Body"
        className="mono"
        defaultValue={SAMPLE_BODY}
        spellCheck={false}
      />
    </Form>
  );
}
