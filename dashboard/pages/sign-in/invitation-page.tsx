/** /invitation: shows an invitation, and accepts it, with the token from the email. */
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type {
  InvitationOffer,
  Organization,
} from "../../../protocol/schemas/organizations/organizations.ts";
import { switchOrganization } from "../../api/organization/organizations.ts";
import { call, signOut } from "../../api/session.ts";
import { readInvitation, writeInvitation } from "../../app/invitation-token.ts";
import { formatRole } from "../../app/roles.ts";
import { useMe } from "../../app/session-state.ts";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { TextField } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { Step } from "../../ui/step.tsx";
import { ExactTime } from "../../ui/time.tsx";

const TITLE = "Join an organization";

const offerQuery = (token: string) =>
  queryOptions({
    queryKey: ["invitation", token],
    queryFn: ({ signal }) =>
      call<InvitationOffer>("POST", "/invitations/lookup", { token }, signal),
  });

export function Page() {
  const [token, setToken] = useState(readInvitation);
  const [joined, setJoined] = useState<Organization | null>(null);
  if (joined !== null) return <WelcomeStep organization={joined} />;
  if (token === null) return <TokenStep onFound={setToken} />;
  return <OfferStep token={token} onJoined={setJoined} />;
}

/** For a token that was copied from the email. */
function TokenStep({ onFound }: { onFound: (token: string) => void }) {
  const queries = useQueryClient();
  return (
    <Step key="token" title={TITLE}>
      <Form
        submit="Continue"
        onSubmit={async (value) => {
          const token = value("token").trim();
          await queries.fetchQuery(offerQuery(token));
          onFound(token);
        }}
      >
        <TextField name="token" label="Token from the email" autoComplete="off" />
      </Form>
      <OtherAccount />
    </Step>
  );
}

interface OfferProps {
  token: string;
  onJoined: (organization: Organization) => void;
}

function OfferStep({ token, onJoined }: OfferProps) {
  return (
    <Step key="offer" title={TITLE}>
      <QueryContent query={useQuery(offerQuery(token))}>
        {(offer) => (
          <>
            <Offer offer={offer} />
            <Form
              submit="Accept the invitation"
              onSubmit={async () => {
                onJoined(await call<Organization>("POST", "/invitations/accept", { token }));
                writeInvitation(null);
              }}
            />
          </>
        )}
      </QueryContent>
      <OtherAccount />
    </Step>
  );
}

function Offer({ offer }: { offer: InvitationOffer }) {
  const { organization_name: organization, role, inviter_email: inviter, expires_at: end } = offer;
  return (
    <>
      <p>
        {inviter === null ? (
          "You are invited"
        ) : (
          <>
            <strong>{inviter}</strong> invites you
          </>
        )}{" "}
        to join{" "}
        <strong>
          <bdi>{organization}</bdi>
        </strong>{" "}
        as {formatRole(role)}.
      </p>
      <p className="hint">
        Valid until <ExactTime timestamp={end} />
      </p>
    </>
  );
}

function OtherAccount() {
  const { user } = useMe();
  return (
    <div className="other-account">
      <p>
        You are signed in as <strong>{user.email}</strong>.
      </p>
      <Form submit="Use a different account" kind="plain" onSubmit={signOut} />
    </div>
  );
}

function WelcomeStep({ organization: { id, name, role } }: { organization: Organization }) {
  return (
    <Step key="welcome" title="Welcome">
      <p role="status">
        You joined{" "}
        <strong>
          <bdi>{name}</bdi>
        </strong>{" "}
        as {formatRole(role)}.
      </p>
      <Form
        submit="Open the organization"
        onSubmit={async () => {
          await switchOrganization(id);
          location.assign("/");
        }}
      />
    </Step>
  );
}
