/** The active sessions of the account. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { Session } from "../../../protocol/schemas/accounts/accounts.ts";
import { sessionsQuery } from "../../api/session-list.ts";
import { call } from "../../api/session.ts";
import { ConfirmButton } from "../../ui/forms/dialog.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Badge, Detail, Row, Rows, Section } from "../../ui/section.tsx";
import { ExactTime, RelativeTime } from "../../ui/time.tsx";

export function SessionsSection() {
  return (
    <Section title="Sessions">
      <QueryContent query={useQuery(sessionsQuery)}>
        {({ sessions }) => (
          <Rows>
            {sessions.map((session) => (
              <SessionRow key={session.id} session={session} />
            ))}
          </Rows>
        )}
      </QueryContent>
    </Section>
  );
}

function SessionRow({ session }: { session: Session }) {
  const { id, device: name, ip, createdAt, lastSeenAt, current } = session;
  const queries = useQueryClient();
  const signOutButton = (
    <ConfirmButton
      button={{ children: "Sign out", "aria-label": `Sign out ${name} at ${ip}` }}
      title="Sign this session out?"
      submit="Sign out"
      onSubmit={async () => {
        await call("DELETE", `/auth/sessions/${id}`);
        await queries.invalidateQueries(sessionsQuery);
        notify(`${name} at ${ip} was signed out.`);
      }}
    >
      <p>
        <strong>
          <bdi>{name}</bdi>
        </strong>{" "}
        at {ip} will be signed out at once.
      </p>
    </ConfirmButton>
  );
  return (
    <Row actions={current ? undefined : signOutButton}>
      <strong>
        <bdi>{name}</bdi>
      </strong>
      {current && <Badge>this session</Badge>}
      <Detail>
        {ip} · last used <RelativeTime timestamp={lastSeenAt} /> · since{" "}
        <ExactTime timestamp={createdAt} />
      </Detail>
    </Row>
  );
}
