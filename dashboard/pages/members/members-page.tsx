/** /members: the members of the organization, the people who were invited to it, and the organization itself. */
import { useMe } from "../../app/session-state.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { InvitationsSection, InviteButton } from "./invitations-section.tsx";
import { MembersSection } from "./members-section.tsx";
import { OrganizationSection } from "./organization-section.tsx";

export function Page() {
  const { active_org: organization } = useMe();
  const path = `/orgs/${organization.id}`;
  return (
    <PageFrame title="Members" about={organization.name} actions={<InviteButton />}>
      <MembersSection />
      <InvitationsSection />
      <OrganizationSection />
      <CommandLine
        requests={[
          { label: "List the members", path: `${path}/members` },
          {
            label: "Invite a person",
            method: "POST",
            lowestRole: "admin",
            path: `${path}/invitations`,
            body: { email: "ann@example.com", role: "member" },
          },
        ]}
      />
    </PageFrame>
  );
}
