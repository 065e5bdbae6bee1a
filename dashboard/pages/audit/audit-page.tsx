/** /audit: what people and machines did in the organization. The filter is in the URL. */
import { useMemo } from "react";
import { useQueryParameters } from "../../app/query-parameters.ts";
import { useMe } from "../../app/session-state.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { Section } from "../../ui/section.tsx";
import { getEventsPath, pickFilter } from "./event-filter.ts";
import { EventFilterBar } from "./event-filter-bar.tsx";
import { EventList } from "./event-list.tsx";
import { ExportMenu } from "./export-menu.tsx";

export function Page() {
  const { active_org: organization } = useMe();
  const search = useQueryParameters();
  const filter = useMemo(() => pickFilter(search), [search]);
  return (
    <PageFrame
      title="Audit log"
      about={`Who did what in ${organization.name}, newest first. Events are stored for 400 days.`}
      actions={<ExportMenu filter={filter} />}
      width="wide"
    >
      <EventFilterBar />
      <Section title="Events">
        <EventList path="/events" filter={filter} />
      </Section>
      <CommandLine requests={[{ path: getEventsPath("/events", filter, { limit: 100 }) }]} />
    </PageFrame>
  );
}
