/** The notice beside a mailed code or link: where a server without a mail server has written the email. */
import { useQuery } from "@tanstack/react-query";
import { setupQuery } from "../api/setup.ts";

interface Props {
  /** The content of the email, such as `code`. */
  content: "code" | "link";
}

/** On a server without a mail server, whose mails are files that only its operator can read. */
export function MailNotice({ content }: Props) {
  const { data } = useQuery(setupQuery);
  if (data?.mail !== "files") return null;
  return (
    <p role="note" className="notice">
      This server has no mail server, so the email is only a file in its data directory (
      <code>mail/</code>). Ask the operator of the server for the {content}.
    </p>
  );
}
