/** In place of a resource that the selected organization does not have: another one of the user's may have it. */
import { useQuery } from "@tanstack/react-query";
import { resourceOwnersQuery, switchOrganization } from "../../api/organization/organizations.ts";
import { useMe } from "../../app/session-state.ts";
import { ActionButton } from "../button.tsx";
import { EmptyState, type EmptyStateProps } from "./empty-state.tsx";
import { Skeleton } from "./skeleton.tsx";

interface MissingResourceProps extends Omit<EmptyStateProps, "commands"> {
  id: string;
  /** The kind of resource: `tunnel`. */
  kind: string;
}

/** The title and the children are shown if no organization of the user has it. */
export function MissingResource({ id, kind, title, children }: MissingResourceProps) {
  const { active_org: selected } = useMe();
  const owners = useQuery(resourceOwnersQuery(id));
  if (owners.isPending) return <Skeleton />;
  // The selected organization can have the tunnel of a request that is no longer stored.
  const owner = owners.data?.find((each) => each.id !== selected.id);
  if (owner === undefined) return <EmptyState title={title}>{children}</EmptyState>;
  return (
    <EmptyState title={`This ${kind} belongs to another of your organizations`}>
      <p>Switching to it applies to all tabs.</p>
      <ActionButton kind="primary" action={() => switchOrganization(owner.id)}>
        Switch to <bdi>{owner.name}</bdi>
      </ActionButton>
    </EmptyState>
  );
}
