/** Open invitations: people who were invited to the organization and have not accepted yet. */
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Invitation } from "../../../protocol/schemas/organizations/organizations.ts";
import { loadList } from "../../api/lists.ts";
import { call } from "../../api/session.ts";
import { MailNotice } from "../../app/mail-notice.tsx";
import { useMe } from "../../app/session-state.ts";
import { ConfirmButton, DialogButton } from "../../ui/forms/dialog.tsx";
import { SelectField, TextField } from "../../ui/forms/fields.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Badge, Detail, Row, Rows, Section } from "../../ui/section.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { getGrantableRoles } from "../../app/grantable-roles.ts";

const invitationsQuery = (organizationId: string) =>
  queryOptions({
    queryKey: ["invitations", organizationId],
    queryFn: ({ signal }) => loadList<Invitation>(`/orgs/${organizationId}/invitations`, signal),
  });

/** The button that opens the dialog to invite a person; nothing for a user who may not invite. */
export function InviteButton() {
  const { active_org: organization } = useMe();
  const queries = useQueryClient();
  const roles = getGrantableRoles(organization.role);
  if (roles.length === 0) return null;
  return (
    <DialogButton
      button={{ children: "Invite a person", kind: "primary" }}
      link="invite"
      title={`Invite a person to ${organization.name}`}
      submit="Send the invitation"
      onSubmit={async (value) => {
        const body = { email: value("email"), role: value("role") };
        await call("POST", `/orgs/${organization.id}/invitations`, body);
        await queries.invalidateQueries(invitationsQuery(organization.id));
        notify(`${value("email")} is invited.`);
      }}
    >
      <TextField name="email" label="Email address" type="email" autoComplete="off" />
      <SelectField name="role" label="Role" options={roles} chosen="member" />
      <MailNotice content="link" />
    </DialogButton>
  );
}

export function InvitationsSection() {
  const { active_org: organization } = useMe();
  const queries = useQueryClient();
  const invitations = useQuery(invitationsQuery(organization.id));
  const canRevoke = getGrantableRoles(organization.role).length > 0;

  async function revoke({ id }: Invitation): Promise<void> {
    await call("DELETE", `/orgs/${organization.id}/invitations/${id}`);
    await queries.invalidateQueries(invitationsQuery(organization.id));
  }
  return (
    <Section title="Invitations">
      <QueryContent query={invitations} lines={1}>
        {(list) =>
          list.length === 0 ? (
            <p>There are no open invitations.</p>
          ) : (
            <Rows>
              {list.map((invitation) => (
                <InvitationRow
                  key={invitation.id}
                  invitation={invitation}
                  canRevoke={canRevoke}
                  onRevoke={() => revoke(invitation)}
                />
              ))}
            </Rows>
          )
        }
      </QueryContent>
    </Section>
  );
}

interface RowProps {
  invitation: Invitation;
  canRevoke: boolean;
  onRevoke: () => Promise<void>;
}

function InvitationRow({ invitation, canRevoke, onRevoke }: RowProps) {
  const { email, role, expires_at: end } = invitation;
  const revoke = (
    <ConfirmButton
      button={{ children: "Revoke", "aria-label": `Revoke the invitation of ${email}` }}
      title="Revoke the invitation?"
      submit="Revoke"
      onSubmit={onRevoke}
    >
      <p>
        The link that <strong>{email}</strong> received stops working.
      </p>
    </ConfirmButton>
  );
  return (
    <Row actions={canRevoke ? revoke : undefined}>
      <strong>{email}</strong>
      <Badge>{role}</Badge>
      <Detail>
        Valid until <ExactTime timestamp={end} />
      </Detail>
    </Row>
  );
}
