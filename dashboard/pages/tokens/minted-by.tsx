/** Who minted a token, as the end of a sentence: ` by ann@example.com`. */
import { useQuery } from "@tanstack/react-query";
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { formatFormerMember, membersQuery } from "../../api/organization/organizations.ts";
import { tokensQuery } from "../../api/organization/tokens.ts";
import { useMe } from "../../app/session-state.ts";

export function MintedBy({ token: { createdBy, mintedByMasterId } }: { token: Token }) {
  const { active_org: organization, user } = useMe();
  const members = useQuery(membersQuery(organization.id)).data;
  const tokens = useQuery(tokensQuery).data;
  if (mintedByMasterId !== null) {
    const name = tokens?.find(({ id }) => id === mintedByMasterId)?.name;
    return name === undefined ? (
      " by a master key"
    ) : (
      <>
        {" by the master key "}
        <bdi>{name}</bdi>
      </>
    );
  }
  if (createdBy === user.id) return " by you";
  if (createdBy === null || members === undefined) return null;
  const member = members.find(({ user_id: id }) => id === createdBy);
  return (
    <>
      {" by "}
      <bdi>{member?.email ?? formatFormerMember(createdBy)}</bdi>
    </>
  );
}
