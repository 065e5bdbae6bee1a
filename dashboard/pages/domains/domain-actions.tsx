/** The actions on a domain. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { domainsQuery } from "../../api/domains.ts";
import { call } from "../../api/session.ts";
import { tunnelsQuery, useTunnel } from "../../api/tunnels.ts";
import { Button } from "../../ui/button.tsx";
import { notify, notifyOfError } from "../../ui/feedback/notifications.tsx";
import { ActionsMenu, MenuItem, MenuSeparator } from "../../ui/menu.tsx";
import { BindDialog } from "./bind-dialog.tsx";
import { RemoveDialog } from "./remove-dialog.tsx";

export function DomainActions({ domain }: { domain: CustomDomain }) {
  const { id, domain: name, verified, boundTunnelId } = domain;
  const tunnel = useTunnel(boundTunnelId ?? "").data;
  const queries = useQueryClient();
  const [shown, setShown] = useState<"bind" | "remove" | null>(null);
  const isBound = boundTunnelId !== null;
  const close = () => setShown(null);
  const reload = () =>
    Promise.all([queries.invalidateQueries(domainsQuery), queries.invalidateQueries(tunnelsQuery)]);

  async function bindAgain(): Promise<void> {
    await call("PUT", `/domains/${id}/bind`, { tunnel_id: boundTunnelId });
    await reload();
  }
  async function unbind(): Promise<void> {
    await call("DELETE", `/domains/${id}/bind`);
    await reload();
    notify(`${name} leads to no tunnel now.`, {
      label: "Undo",
      act: () => void bindAgain().catch(notifyOfError),
    });
  }
  return (
    <div className="actions">
      {verified && !isBound && (
        <Button aria-label={`Choose the tunnel of ${name}`} onClick={() => setShown("bind")}>
          Choose a tunnel
        </Button>
      )}
      <ActionsMenu name={name}>
        {isBound && (
          <>
            <MenuItem onClick={() => setShown("bind")}>Choose another tunnel…</MenuItem>
            <MenuItem onClick={() => void unbind().catch(notifyOfError)}>
              Unbind from {tunnel?.name ?? "its tunnel"}
            </MenuItem>
            <MenuSeparator />
          </>
        )}
        <MenuItem onClick={() => setShown("remove")}>Remove…</MenuItem>
      </ActionsMenu>
      <BindDialog domain={domain} isOpen={shown === "bind"} onClose={close} onBind={reload} />
      <RemoveDialog domain={domain} isOpen={shown === "remove"} onClose={close} />
    </div>
  );
}
