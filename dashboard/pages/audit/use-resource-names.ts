/** The names that the sentences of audit events show instead of ids. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { namedResourcesQuery } from "../../api/named-resources.ts";
import { membersQuery } from "../../api/organization/organizations.ts";
import { useMe } from "../../app/session-state.ts";
import type { ResourceNames } from "./sentences.ts";

/** Resources that were deleted have no name here, so their events show the id. */
export function useResourceNames(): ResourceNames {
  const { data: resources } = useQuery(namedResourcesQuery);
  const { data: members } = useQuery(membersQuery(useMe().active_org.id));
  return useMemo(
    () =>
      new Map([
        ...(resources ?? []).map(({ id, name }) => [id, name] as const),
        ...(members ?? []).map(({ user_id: id, email }) => [id, email] as const),
      ]),
    [resources, members],
  );
}
