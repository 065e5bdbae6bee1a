/** The organizations of the user. */
import { queryOptions } from "@tanstack/react-query";
import type { AccountSummary } from "../../../protocol/schemas/accounts/accounts.ts";
import type {
  Member,
  Organization,
} from "../../../protocol/schemas/organizations/organizations.ts";
import { loadList } from "../lists.ts";
import { beginSession, call, load } from "../session.ts";

export const organizationsQuery = queryOptions({
  queryKey: ["organizations"],
  queryFn: ({ signal }) => load<Organization[]>("/orgs", signal),
});

/** Which of the user's organizations has a tunnel, a captured request, a private network or a webhook receiver. */
export const resourceOwnersQuery = (resourceId: string) =>
  queryOptions({
    queryKey: ["organizations", "with", resourceId],
    queryFn: ({ signal }) =>
      load<Organization[]>(`/orgs?${new URLSearchParams({ resource_id: resourceId })}`, signal),
    staleTime: Infinity,
  });

export const membersQuery = (organizationId: string) =>
  queryOptions({
    queryKey: ["members", organizationId],
    queryFn: ({ signal }) => loadList<Member>(`/orgs/${organizationId}/members`, signal),
  });

/** Enough to tell former members apart, whose addresses are no longer known. */
const USER_ID_SHOWN_CHARS = 8;

/** The text in place of the name of a user who has left the organization. */
export function formatFormerMember(userId: string): string {
  return `former member ${userId.slice(0, USER_ID_SHOWN_CHARS)}`;
}

export function createOrganization(name: string): Promise<Organization> {
  return call("POST", "/orgs", { name });
}

/** The pages load again with the data of the other organization. */
export async function switchOrganization(id: string): Promise<void> {
  const { access_token } = await call<AccountSummary>("POST", `/orgs/${id}/switch`);
  beginSession(access_token);
}
