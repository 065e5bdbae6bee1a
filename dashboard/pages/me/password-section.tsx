/** The password is changed like a forgotten one, with an emailed link: a stolen session alone can't change it. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { send } from "../../api/request.ts";
import { MailNotice } from "../../app/mail-notice.tsx";
import { useMe } from "../../app/session-state.ts";
import { ActionButton } from "../../ui/button.tsx";
import { Section } from "../../ui/section.tsx";
import { personalEventsFilter } from "../audit/event-filter.ts";

export function PasswordSection() {
  const { user, has_password: hasPassword } = useMe();
  const queries = useQueryClient();
  const [isSent, setSent] = useState(false);

  async function sendLink(): Promise<void> {
    await send("POST", "/auth/forgot", { body: { email: user.email } });
    setSent(true);
    await queries.invalidateQueries(personalEventsFilter);
  }
  return (
    <Section title="Password">
      {isSent ? (
        <>
          <p role="status">
            A link is on its way to <strong>{user.email}</strong>. It is valid for one hour and
            works once.
          </p>
          <MailNotice content="link" />
        </>
      ) : (
        <>
          <p>
            {hasPassword ? "You change it" : "You have none, and can set one"} with a link that we
            email you. Your new password signs out all of your sessions.
          </p>
          <div className="actions">
            <ActionButton action={sendLink}>Email me a link</ActionButton>
          </div>
        </>
      )}
    </Section>
  );
}
