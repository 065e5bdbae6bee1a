/** The active organization, the others to switch to, and a dialog to create one. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ORGANIZATION_NAME_MAX_CHARS } from "../../../protocol/limits.ts";
import {
  createOrganization,
  organizationsQuery,
  switchOrganization,
} from "../../api/organization/organizations.ts";
import { Button } from "../../ui/button.tsx";
import { OpenFormDialog } from "../../ui/forms/dialog.tsx";
import { TextField } from "../../ui/forms/fields.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Menu, MenuChoices, MenuItem, MenuSeparator } from "../../ui/menu.tsx";
import { LOCALE } from "../../ui/text/locale.ts";
import { notify, notifyOfError } from "../../ui/feedback/notifications.tsx";
import { useMe } from "../session-state.ts";

export function OrganizationMenu() {
  const { active_org: active } = useMe();
  const { data = [] } = useQuery(organizationsQuery);
  const [isCreating, setCreating] = useState(false);
  const choices = data
    .toSorted((a, b) => a.name.localeCompare(b.name, LOCALE))
    .map(({ id, name, role, plan }) => ({ value: id, name, detail: `${plan} plan · ${role}` }));
  return (
    <>
      <Menu
        trigger={
          <Button kind="quiet" className="organization">
            <bdi>{active.name}</bdi>
            <Icon name="down" />
          </Button>
        }
      >
        <MenuChoices
          label="Organizations"
          value={active.id}
          choices={choices}
          onChoose={(id) => void switchOrganization(id).catch(notifyOfError)}
        />
        <MenuSeparator />
        <MenuItem onClick={() => setCreating(true)}>New organization…</MenuItem>
      </Menu>
      <NewOrganizationDialog isOpen={isCreating} onClose={() => setCreating(false)} />
    </>
  );
}

interface DialogProps {
  isOpen: boolean;
  onClose: () => void;
}

function NewOrganizationDialog({ isOpen, onClose }: DialogProps) {
  const queries = useQueryClient();
  return (
    <OpenFormDialog
      isOpen={isOpen}
      onClose={onClose}
      title="New organization"
      submit="Create"
      onSubmit={async (value) => {
        const { id, name } = await createOrganization(value("name"));
        await queries.invalidateQueries(organizationsQuery);
        const act = () => void switchOrganization(id).catch(notifyOfError);
        notify(`${name} was created.`, { label: "Switch to it", act });
      }}
    >
      <TextField name="name" label="Name" maxLength={ORGANIZATION_NAME_MAX_CHARS} />
    </OpenFormDialog>
  );
}
