/** The dialog to choose the tunnel that a domain leads to. */
import { useQuery } from "@tanstack/react-query";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { call } from "../../api/session.ts";
import { getTunnelState, tunnelsQuery } from "../../api/tunnels.ts";
import { formatAgentCommand } from "../../ui/text/agent-command.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/copy.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { OpenDialog, OpenFormDialog } from "../../ui/forms/dialog.tsx";
import { SelectField } from "../../ui/forms/fields.tsx";
import { STATE_TEXTS } from "../tunnels/tunnel-badges.tsx";

interface BindDialogProps {
  domain: CustomDomain;
  isOpen: boolean;
  onClose: () => void;
  onBind: () => Promise<unknown>;
}

export function BindDialog({ domain, isOpen, onClose, onBind }: BindDialogProps) {
  const { id, domain: name, boundTunnelId } = domain;
  const { data: tunnels = [] } = useQuery(tunnelsQuery);
  const offered = tunnels.filter(
    (tunnel) => tunnel.protocol !== "tcp" && getTunnelState(tunnel) !== "expired",
  );
  const dialog = { isOpen, onClose, title: `The tunnel of ${name}` };
  const command = formatAgentCommand(`http 3000 --url https://${name}`);
  if (offered.length === 0) {
    return (
      <OpenDialog {...dialog}>
        <p>There is no HTTP tunnel yet. This command opens one for the domain:</p>
        <Command>{command}</Command>
        <div className="actions dialog-end">
          <Button onClick={onClose}>Close</Button>
        </div>
      </OpenDialog>
    );
  }
  return (
    <OpenFormDialog
      {...dialog}
      submit="Save"
      onSubmit={async (value) => {
        const tunnelId = value("tunnel_id");
        await call("PUT", `/domains/${id}/bind`, { tunnel_id: tunnelId });
        await onBind();
        const tunnel = offered.find((each) => each.id === tunnelId);
        notify(`${name} now leads to ${tunnel?.name}.`);
      }}
    >
      <SelectField
        name="tunnel_id"
        label="Tunnel"
        options={offered.map((tunnel) => ({
          value: tunnel.id,
          label: `${tunnel.name} (${STATE_TEXTS[getTunnelState(tunnel)].label})`,
        }))}
        {...(boundTunnelId !== null && { chosen: boundTunnelId })}
      />
      <p className="hint">Or open a new tunnel for this domain:</p>
      <Command>{command}</Command>
    </OpenFormDialog>
  );
}
