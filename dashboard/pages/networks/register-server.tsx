/** The dialog that registers a WireGuard server which exists already, or replaces the registered one. */
import { useQueryClient } from "@tanstack/react-query";
import type { PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { networkQuery } from "../../api/networks.ts";
import { call } from "../../api/session.ts";
import { useHasRole } from "../../app/roles.ts";
import { DialogButton } from "../../ui/forms/dialog.tsx";
import { TextField } from "../../ui/forms/fields.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { isReachedDirectly } from "./network-health.ts";

/** The default of WireGuard and of `underpass vpn`. */
const WIREGUARD_PORT = 51_820;

export function RegisterServerButton({ network }: { network: PrivateNetwork }) {
  const queries = useQueryClient();
  const isReplacing = network.server_public_key !== null;
  const title = isReplacing ? "Replace the server" : "Register an existing WireGuard server";
  if (!useHasRole("member")) return null;
  return (
    <DialogButton
      button={{ children: isReplacing ? "Replace" : "Register an existing server" }}
      title={title}
      submit={isReplacing ? "Replace" : "Register"}
      onSubmit={async (value) => {
        const endpoint = value("public_endpoint").trim();
        const body = {
          server_public_key: value("server_public_key").trim(),
          server_listen_port: Number(value("server_listen_port")),
          ...(endpoint !== "" && { public_endpoint: endpoint }),
        };
        const path = `/private-networks/${network.id}/server`;
        const changed = await call<PrivateNetwork>("PUT", path, body);
        await queries.cancelQueries(networkQuery(network.id));
        queries.setQueryData(networkQuery(network.id).queryKey, changed);
        notify(isReplacing ? "The server was replaced." : "The server was registered.");
      }}
    >
      {isReplacing && (
        <p className="notice warning">
          With another public key, every device needs a new configuration.
        </p>
      )}
      <TextField
        name="server_public_key"
        label="Public key of the server"
        defaultValue={network.server_public_key ?? ""}
        autoComplete="off"
        spellCheck={false}
        hint={
          <>
            As <code>wg show</code> prints it. The private key stays on the server.
          </>
        }
      />
      <TextField
        name="server_listen_port"
        label="Port on which WireGuard listens"
        type="number"
        min={1}
        max={65_535}
        defaultValue={network.server_listen_port ?? WIREGUARD_PORT}
      />
      <TextField
        name="public_endpoint"
        label="Public address of the server (optional)"
        required={false}
        placeholder="vpn.example.com:51820"
        defaultValue={isReachedDirectly(network) ? (network.public_endpoint ?? "") : ""}
        autoComplete="off"
        hint="Only for a server that devices reach without the relay."
      />
    </DialogButton>
  );
}
