/** /activate: a person approves or denies the sign-in of a machine's command line. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { PendingDevice } from "../../../protocol/schemas/accounts/devices.ts";
import { organizationsQuery, switchOrganization } from "../../api/organization/organizations.ts";
import { call, load } from "../../api/session.ts";
import { useSetQueryParameters } from "../../app/query-parameters.ts";
import { includesRole, useHasRole } from "../../app/roles.ts";
import { useMe } from "../../app/session-state.ts";
import { ActionButton } from "../../ui/button.tsx";
import { notifyOfError } from "../../ui/feedback/notifications.tsx";
import { SelectField, TextField } from "../../ui/forms/fields.tsx";
import { Form } from "../../ui/forms/form.tsx";
import { Step } from "../../ui/step.tsx";
import { RelativeTime } from "../../ui/time.tsx";

const TITLE = "Connect a machine";

type Decision = "approved" | "denied";
const CONFIRMATIONS: Record<Decision, string> = {
  approved: "Done. Your command line continues by itself.",
  denied: "Denied. The machine got no access.",
};

export function Page() {
  const [device, setDevice] = useState<PendingDevice | null>(null);
  const [decision, setDecision] = useState<Decision | null>(null);
  if (decision !== null) {
    return (
      <Step key="done" title={TITLE}>
        <p role="status">{CONFIRMATIONS[decision]} You can close this page.</p>
      </Step>
    );
  }
  if (device === null) return <CodeStep onFound={setDevice} />;
  return <DecisionStep device={device} onDecided={setDecision} />;
}

function CodeStep({ onFound }: { onFound: (device: PendingDevice) => void }) {
  const container = useRef<HTMLDivElement>(null);
  const setQuery = useSetQueryParameters();
  const canApprove = useHasRole("member");
  const [initialCode] = useState(() => new URLSearchParams(location.search).get("code") ?? "");
  useEffect(() => {
    if (initialCode !== "") container.current?.querySelector("form")?.requestSubmit();
  }, [initialCode]);
  return (
    <Step key="code" title={TITLE}>
      <div ref={container}>
        <Form
          submit="Continue"
          onSubmit={async (value) => {
            const query = new URLSearchParams({ code: value("code") });
            const found = await load<PendingDevice>(`/auth/cli/request?${query}`);
            // The page is loaded again for another organization, and then finds the machine by this code.
            setQuery({ code: found.user_code });
            onFound(found);
          }}
        >
          <TextField
            name="code"
            label="Code from your command line"
            className="code"
            autoComplete="off"
            autoCapitalize="characters"
            spellCheck={false}
            placeholder="BCDF-GHJK"
            defaultValue={initialCode}
          />
          {!canApprove && <OrganizationField />}
        </Form>
      </div>
    </Step>
  );
}

interface DecisionProps {
  device: PendingDevice;
  onDecided: (decision: Decision) => void;
}

function DecisionStep({ device, onDecided }: DecisionProps) {
  const { label, user_code: code, requested_from: address } = device;
  const { active_org: organization, user } = useMe();
  return (
    <Step key="decision" title={TITLE}>
      <p>
        <strong id="machine">{label}</strong> requests access to open tunnels for{" "}
        <strong>{organization.name}</strong>. It shows this code:
      </p>
      <p className="shown code">{code}</p>
      <p className="hint">
        Requested{address !== null && ` from ${address}`} ·{" "}
        <RelativeTime timestamp={device.requested_at} /> · You are signed in as {user.email}
      </p>
      <p>Approve only if your own command line shows the same code right now.</p>
      <Form
        submit="Approve"
        beside={
          <ActionButton
            action={async () => {
              await call("POST", "/auth/cli/deny", { device_code: code });
              onDecided("denied");
            }}
          >
            Deny
          </ActionButton>
        }
        onSubmit={async () => {
          await call("POST", "/auth/cli/authorize", { device_code: code });
          onDecided("approved");
        }}
      >
        <OrganizationField />
      </Form>
    </Step>
  );
}

/** The organization that the tunnels of the machine will belong to; nothing if there is no choice. */
function OrganizationField() {
  const { active_org: active } = useMe();
  const { data = [] } = useQuery(organizationsQuery);
  const options = data
    .filter(({ id, role }) => id === active.id || includesRole(role, "member"))
    .map(({ id, name }) => ({ value: id, label: name }));
  if (options.length < 2) return null;
  return (
    <SelectField
      name="organization"
      label="Organization"
      hint="The tunnels of this machine will belong to it."
      options={options}
      chosen={active.id}
      onChoose={(id) => void switchOrganization(id).catch(notifyOfError)}
    />
  );
}
