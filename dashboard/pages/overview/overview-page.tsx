/** /: the state of the organization at a glance. */
import { useMe } from "../../app/session-state.ts";
import { EmptyState } from "../../ui/feedback/empty-state.tsx";
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  const { active_org: organization } = useMe();
  const server = location.origin;
  return (
    <PageFrame title="Overview" about={organization.name}>
      <EmptyState title="Open your first tunnel" command={`underpass http 3000 --server ${server}`}>
        <p>Run this on the machine whose port 3000 you want to share.</p>
      </EmptyState>
    </PageFrame>
  );
}
