/** The addresses that visitors of a tunnel may come from. */
import { useQueryClient } from "@tanstack/react-query";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { call } from "../../../api/session.ts";
import { updateCachedTunnel } from "../../../api/tunnels.ts";
import { useHasRole } from "../../../app/roles.ts";
import { ActionButton } from "../../../ui/button.tsx";
import { notify, notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { DialogButton } from "../../../ui/forms/dialog.tsx";
import { parseLines, withEntryErrors } from "../../../ui/forms/lines.ts";
import { AddressesField } from "./addresses-field.tsx";
import { GateSection } from "./gate-section.tsx";

export function IpAllowlistSection({ tunnel }: { tunnel: Tunnel }) {
  const { id, allowedCidrs: cidrs, protocol } = tunnel;
  const queries = useQueryClient();
  const canChange = useHasRole("member");
  const path = `/tunnels/${id}/ip-allowlist`;

  async function set(next: readonly string[]): Promise<void> {
    const sent = call<{ cidrs: string[] }>("PUT", path, { cidrs: next });
    const saved = await withEntryErrors({ cidrs: next }, sent);
    await updateCachedTunnel(queries, id, { allowedCidrs: saved.cidrs });
  }

  async function remove(previous: readonly string[]): Promise<void> {
    await call("DELETE", path);
    await updateCachedTunnel(queries, id, { allowedCidrs: null });
    notify("Every address is allowed.", {
      label: "Restore the list",
      act: () => void set(previous).catch(notifyOfError),
    });
  }

  return (
    <GateSection
      title="IP allowlist"
      isOn={cidrs !== null}
      about={
        protocol === "tcp"
          ? "Only visitors from these addresses can connect. Others get no connection."
          : "Only visitors from these addresses are admitted. Others get 403 Forbidden."
      }
      actions={
        canChange && (
          <>
            <DialogButton
              button={{
                children: cidrs === null ? "Set up" : "Change",
                "aria-label":
                  cidrs === null ? "Set up the IP allowlist" : "Change the IP allowlist",
              }}
              title="IP allowlist"
              submit="Save"
              onSubmit={async (value) => {
                await set(parseLines(value("cidrs")));
                notify("The IP allowlist is in force.");
              }}
            >
              <AddressesField cidrs={cidrs ?? []} />
            </DialogButton>
            {cidrs !== null && (
              <ActionButton aria-label="Remove the IP allowlist" action={() => remove(cidrs)}>
                Remove
              </ActionButton>
            )}
          </>
        )
      }
    >
      {cidrs !== null && (
        <ul className="allowed-visitors" aria-label="Allowed addresses">
          {cidrs.map((cidr) => (
            <li key={cidr}>
              <code>{cidr}</code>
            </li>
          ))}
        </ul>
      )}
    </GateSection>
  );
}
