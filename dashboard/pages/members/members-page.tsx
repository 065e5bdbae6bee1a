/** /members: the members of the organization, and the people who were invited to it. */
import { useMe } from "../../app/session-state.ts";
import { PageFrame } from "../../ui/page.tsx";
import { InvitationsSection } from "./invitations-section.tsx";
import { MembersSection } from "./members-section.tsx";

export function Page() {
  const { active_org: organization } = useMe();
  return (
    <PageFrame title="Members" about={organization.name}>
      <MembersSection />
      <InvitationsSection />
    </PageFrame>
  );
}
