/** The actions on a tunnel of the list. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { getTunnelState } from "../../../api/tunnels.ts";
import { useHasRole } from "../../../app/roles.ts";
import { notify, notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { ActionsMenu, MenuItem, MenuLink, MenuSeparator } from "../../../ui/menu.tsx";
import { copyText } from "../../../ui/text/clipboard.ts";
import { getAddress } from "../agent-command.ts";
import { useTunnelControls } from "../use-tunnel-controls.ts";

export function TunnelMenu({ tunnel }: { tunnel: Tunnel }) {
  const { id, name, protocol } = tunnel;
  const { stop, start } = useTunnelControls();
  const [isBusy, setBusy] = useState(false);
  const canChange = useHasRole("member");
  const state = getTunnelState(tunnel);
  async function change(action: (tunnel: Tunnel) => Promise<void>): Promise<void> {
    setBusy(true);
    await action(tunnel).catch(notifyOfError);
    setBusy(false);
  }
  async function copy(): Promise<void> {
    await copyText(getAddress(tunnel));
    notify("The address was copied.");
  }
  return (
    <ActionsMenu name={name} isBusy={isBusy}>
      {protocol !== "tcp" && (
        <MenuLink link={<Link to="/requests" search={{ tunnel_id: id }} />}>
          Open its requests
        </MenuLink>
      )}
      <MenuLink link={<Link to="/tunnels/$id" params={{ id }} search={{ tab: "access" }} />}>
        Change who has access
      </MenuLink>
      {window.isSecureContext && (
        <MenuItem onClick={() => void copy().catch(notifyOfError)}>Copy the address</MenuItem>
      )}
      {canChange && state !== "expired" && (
        <>
          <MenuSeparator />
          {state === "stopped" ? (
            <MenuItem isDisabled={isBusy} onClick={() => void change(start)}>
              Start
            </MenuItem>
          ) : (
            <MenuItem isDisabled={isBusy} onClick={() => void change(stop)}>
              Stop
            </MenuItem>
          )}
        </>
      )}
    </ActionsMenu>
  );
}
