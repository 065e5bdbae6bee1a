/** /invitation: accepts an invitation with the token from the email. */
import { useState } from "react";
import type { Organization } from "../../../protocol/schemas/organizations/organizations.ts";
import { switchOrganization } from "../../api/organization/organizations.ts";
import { call, signOut } from "../../api/session.ts";
import { readInvitation, writeInvitation } from "../../app/invitation-token.ts";
import { formatRole } from "../../app/roles.ts";
import { useMe } from "../../app/session-state.ts";
import { TextField } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { Step } from "../../ui/step.tsx";

export function Page() {
  const me = useMe();
  const [token] = useState(readInvitation);
  const [joined, setJoined] = useState<Organization | null>(null);
  if (joined !== null) return <WelcomeStep organization={joined} />;
  return (
    <Step key="accept" title="Join an organization">
      <p>
        You are signed in as <strong>{me.user.email}</strong>.
      </p>
      <Form
        submit="Accept the invitation"
        onSubmit={async (value) => {
          const body = { token: token ?? value("token").trim() };
          setJoined(await call<Organization>("POST", "/invitations/accept", body));
          writeInvitation(null);
        }}
      >
        {token === null && <TextField name="token" label="Token from the email" />}
      </Form>
      <Form submit="Use a different account" kind="plain" onSubmit={signOut} />
    </Step>
  );
}

function WelcomeStep({ organization: { id, name, role } }: { organization: Organization }) {
  return (
    <Step key="welcome" title="Welcome">
      <p role="status">
        You joined <strong>{name}</strong> as {formatRole(role)}.
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
