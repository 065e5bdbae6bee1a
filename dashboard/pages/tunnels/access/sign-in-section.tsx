/** The sign-in of a tunnel: visitors sign in with the identity provider, and the lists say who may pass. */
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import type { TunnelIdentityGate } from "../../../../protocol/schemas/access/identity-gate.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { providersQuery } from "../../../api/providers.ts";
import { call, load } from "../../../api/session.ts";
import { updateCachedTunnel } from "../../../api/tunnels.ts";
import { useHasRole } from "../../../app/roles.ts";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { ConfirmButton, DialogButton } from "../../../ui/forms/dialog.tsx";
import { TextAreaField } from "../../../ui/forms/fields.tsx";
import type { GetValue } from "../../../ui/forms/form.tsx";
import { parseLines, withEntryErrors } from "../../../ui/forms/lines.ts";
import { GateSection } from "./gate-section.tsx";

const toGatePath = (id: string) => `/tunnels/${id}/edge-auth`;

const identityGateQuery = (id: string) =>
  queryOptions({
    queryKey: ["identity-gate", id],
    queryFn: ({ signal }) => load<TunnelIdentityGate>(toGatePath(id), signal),
  });

export function SignInSection({ tunnel }: { tunnel: Tunnel }) {
  const { id, edgeAuthEnabled: isOn, customDomains } = tunnel;
  const canChange = useHasRole("member");
  const providers = useQuery(providersQuery).data?.providers;
  const hasProvider = providers?.includes("idp_a") ?? true;
  const gate = useQuery({ ...identityGateQuery(id), enabled: isOn });

  const lists = isOn ? gate.data : undefined;
  return (
    <GateSection
      title="Sign-in"
      isOn={isOn}
      about="Visitors sign in with the identity provider of this server, with an email address or a domain that you allow."
      actions={
        canChange && (
          <>
            {hasProvider && (!isOn || lists) && <AllowButton tunnel={tunnel} lists={lists} />}
            {isOn && <RemoveButton id={id} />}
          </>
        )
      }
    >
      {isOn && (
        <QueryContent query={gate}>{(loaded) => <AllowedVisitors gate={loaded} />}</QueryContent>
      )}
      {!hasProvider && (
        <p className="notice" role="note">
          Needs an identity provider: the operator of this server sets one up with{" "}
          <code>IDP_A_ISSUER</code>.
        </p>
      )}
      {isOn && customDomains.length > 0 && (
        <p className="notice warning" role="note">
          The sign-in does not apply to custom domains: visitors of {customDomains.join(", ")} pass
          without it.
        </p>
      )}
    </GateSection>
  );
}

interface AllowButtonProps {
  tunnel: Tunnel;
  /** undefined while the tunnel has no sign-in. */
  lists: TunnelIdentityGate | undefined;
}

/** Sets the sign-in up, or changes its lists. */
function AllowButton({ tunnel: { id, edgeAuthEnabled: isOn }, lists }: AllowButtonProps) {
  const queries = useQueryClient();

  async function save(value: GetValue): Promise<void> {
    const entries = {
      allowed_emails: parseLines(value("allowed_emails")),
      allowed_domains: parseLines(value("allowed_domains")),
    };
    await withEntryErrors(entries, call("PUT", toGatePath(id), entries));
    await queries.prefetchQuery({ ...identityGateQuery(id), staleTime: 0 });
    await updateCachedTunnel(queries, id, { edgeAuthEnabled: true });
    notify("Visitors must sign in from now on.");
  }

  return (
    <DialogButton
      button={{
        children: isOn ? "Change" : "Set up",
        "aria-label": isOn ? "Change the allowed visitors" : "Set up the sign-in",
      }}
      title={isOn ? "Change the allowed visitors" : "Require a sign-in"}
      submit="Save"
      onSubmit={save}
    >
      <p className="hint">
        A visitor must be on one of the lists. When both are empty, every person who signs in is
        admitted.
      </p>
      <TextAreaField
        name="allowed_emails"
        label="Allowed email addresses"
        required={false}
        defaultValue={lists?.allowed_emails?.join("\n")}
        placeholder={"ann@example.com\nbob@example.org"}
        spellCheck={false}
        hint="One per line, at most 100."
      />
      <TextAreaField
        name="allowed_domains"
        label="Allowed email domains"
        required={false}
        defaultValue={lists?.allowed_domains?.join("\n")}
        placeholder="example.com"
        spellCheck={false}
        hint="Admits all people with an address at one of these domains. Subdomains are separate."
      />
    </DialogButton>
  );
}

function RemoveButton({ id }: { id: string }) {
  const queries = useQueryClient();
  return (
    <ConfirmButton
      button={{ children: "Remove", "aria-label": "Remove the sign-in" }}
      title="Remove the sign-in?"
      submit="Remove"
      onSubmit={async () => {
        await call("DELETE", toGatePath(id));
        await updateCachedTunnel(queries, id, { edgeAuthEnabled: false });
        notify("Visitors no longer have to sign in.");
      }}
    >
      <p>Visitors no longer need to sign in. The lists can't be restored.</p>
    </ConfirmButton>
  );
}

function AllowedVisitors({ gate }: { gate: TunnelIdentityGate }) {
  const entries = [
    ...(gate.allowed_emails ?? []),
    ...(gate.allowed_domains ?? []).map((domain) => `@${domain}`),
  ];
  if (entries.length === 0) return <p>Every person who signs in is admitted.</p>;
  return (
    <ul className="allowed-visitors" aria-label="Allowed visitors">
      {entries.map((entry) => (
        <li key={entry}>
          <code>{entry}</code>
        </li>
      ))}
    </ul>
  );
}
