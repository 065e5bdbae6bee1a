/** /audit: what people and machines did in the organization. */
import { useMe } from "../../app/session-state.ts";
import { PageFrame } from "../../ui/page.tsx";
import { Section } from "../../ui/section.tsx";
import { EventList } from "./event-list.tsx";

export function Page() {
  const { active_org: organization } = useMe();
  return (
    <PageFrame title="Audit log" about={organization.name}>
      <Section title="Events">
        <EventList path="/events" />
      </Section>
    </PageFrame>
  );
}
