/** The organization itself: its name, and its deletion. */
import { useQueryClient } from "@tanstack/react-query";
import { ORGANIZATION_NAME_MAX_CHARS } from "../../../protocol/limits.ts";
import type { Organization } from "../../../protocol/schemas/organizations/organizations.ts";
import { organizationsQuery } from "../../api/organization/organizations.ts";
import { call } from "../../api/session.ts";
import { useHasRole } from "../../app/roles.ts";
import { loadMe, useMe } from "../../app/session-state.ts";
import { notify } from "../../ui/feedback/notifications.tsx";
import { ConfirmButton, DialogButton } from "../../ui/forms/dialog.tsx";
import { TextField } from "../../ui/forms/fields.tsx";
import { Section } from "../../ui/section.tsx";

export function OrganizationSection() {
  const { active_org: organization } = useMe();
  const canRename = useHasRole("admin");
  const canDelete = useHasRole("owner");
  if (!canRename) return null;
  return (
    <Section
      title="Organization"
      actions={
        <>
          <RenameButton name={organization.name} />
          {canDelete && <DeleteButton name={organization.name} />}
        </>
      }
    >
      <p className="hint">
        Its name is shown to members and in invitations. No address of a tunnel contains it.
      </p>
    </Section>
  );
}

function RenameButton({ name }: { name: string }) {
  const { active_org: organization } = useMe();
  const queries = useQueryClient();
  return (
    <DialogButton
      button={{ children: "Rename" }}
      title={`Rename ${name}`}
      submit="Rename"
      onSubmit={async (value) => {
        const body = { name: value("name") };
        const renamed = await call<Organization>("PATCH", `/orgs/${organization.id}`, body);
        await Promise.all([loadMe(), queries.invalidateQueries(organizationsQuery)]);
        notify(`${name} is now ${renamed.name}.`);
      }}
    >
      <TextField
        name="name"
        label="New name"
        defaultValue={name}
        maxLength={ORGANIZATION_NAME_MAX_CHARS}
        autoComplete="off"
      />
    </DialogButton>
  );
}

function DeleteButton({ name }: { name: string }) {
  const { active_org: organization } = useMe();
  const queries = useQueryClient();
  return (
    <ConfirmButton
      button={{ children: "Delete" }}
      title={`Delete ${name}?`}
      submit="Delete"
      name={name}
      onSubmit={async () => {
        await call("DELETE", `/orgs/${organization.id}`);
        // Like a member who has left: the session continues with another organization of the user.
        await loadMe();
        await queries.invalidateQueries(organizationsQuery);
        notify(`${name} was deleted.`);
      }}
    >
      <p>
        This deletes its tunnels with their captured requests, its domains, networks and webhook
        receivers, revokes its tokens, and ends its subscription. All members lose access. This
        can't be undone.
      </p>
    </ConfirmButton>
  );
}
