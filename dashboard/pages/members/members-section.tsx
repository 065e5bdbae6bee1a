/** The members of the organization. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { Member } from "../../../protocol/schemas/organizations/organizations.ts";
import { membersQuery, organizationsQuery } from "../../api/organization/organizations.ts";
import { call } from "../../api/session.ts";
import { formatRole } from "../../app/roles.ts";
import { loadMe, useMe } from "../../app/session-state.ts";
import { ConfirmButton, DialogButton } from "../../ui/forms/dialog.tsx";
import { SelectField } from "../../ui/forms/fields.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Badge, Detail, Row, Rows, Section } from "../../ui/section.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { getGrantableRoles } from "../../app/grantable-roles.ts";

export function MembersSection() {
  const { user, active_org: organization } = useMe();
  const members = useQuery(membersQuery(organization.id));
  return (
    <Section title="Members">
      <QueryContent query={members}>
        {(list) => (
          <Rows>
            {list.map((member) => {
              const isSelf = member.user_id === user.id;
              const isOnlyOwner = isSelf && isLastOwner(member, list);
              const actions = isSelf ? <LeaveButton /> : <MemberActions member={member} />;
              return (
                <Row key={member.user_id} actions={isOnlyOwner ? undefined : actions}>
                  <strong>{member.email}</strong>
                  <Badge>{member.role}</Badge>
                  {isSelf && <Badge>you</Badge>}
                  <Detail>
                    Member since <ExactTime timestamp={member.joined_at} />
                    {isOnlyOwner && " · as the only owner, you can't leave"}
                  </Detail>
                </Row>
              );
            })}
          </Rows>
        )}
      </QueryContent>
    </Section>
  );
}

/** The API does not let an organization lose its last owner. */
function isLastOwner({ role }: Member, members: readonly Member[]): boolean {
  return role === "owner" && members.filter((each) => each.role === "owner").length === 1;
}

function MemberActions({ member }: { member: Member }) {
  const { user_id: id, email, role } = member;
  const { active_org: organization } = useMe();
  const queries = useQueryClient();
  const roles = getGrantableRoles(organization.role);
  const path = `/orgs/${organization.id}/members/${id}`;
  const reload = () => queries.invalidateQueries(membersQuery(organization.id));
  if (!roles.includes(role)) return null;
  return (
    <>
      <DialogButton
        button={{ children: "Change role", "aria-label": `Change role of ${email}` }}
        title="Change the role"
        submit="Change"
        onSubmit={async (value) => {
          await call("PATCH", path, { role: value("role") });
          await reload();
          notify(`${email} is now ${formatRole(value("role"))}.`);
        }}
      >
        <p>
          <strong>{email}</strong> is {formatRole(role)} in {organization.name}.
        </p>
        <SelectField name="role" label="New role" options={roles} chosen={role} />
      </DialogButton>
      <ConfirmButton
        button={{ children: "Remove", "aria-label": `Remove ${email}` }}
        title="Remove from the organization?"
        submit="Remove"
        onSubmit={async () => {
          await call("DELETE", path);
          await reload();
          notify(`${email} was removed.`);
        }}
      >
        <p>
          <strong>{email}</strong> loses access to {organization.name} at once.
        </p>
        <p>Tokens that this person minted are revoked, and their tunnels stop.</p>
      </ConfirmButton>
    </>
  );
}

function LeaveButton() {
  const { user, active_org: organization } = useMe();
  const queries = useQueryClient();
  return (
    <ConfirmButton
      button={{ children: "Leave" }}
      title={`Leave ${organization.name}?`}
      submit="Leave"
      onSubmit={async () => {
        await call("DELETE", `/orgs/${organization.id}/members/${user.id}`);
        await loadMe();
        await queries.invalidateQueries(organizationsQuery);
      }}
    >
      <p>Tokens that you minted in it are revoked, and their tunnels stop.</p>
    </ConfirmButton>
  );
}
