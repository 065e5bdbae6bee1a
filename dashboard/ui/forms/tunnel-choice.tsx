/** Restricts a page to one tunnel. */
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";

interface TunnelChoiceProps {
  tunnels: readonly Tunnel[];
  /** Empty: all tunnels. A link can name one that does not exist. */
  tunnelId: string;
  onChoose: (tunnelId: string) => void;
}

export function TunnelChoice({ tunnels, tunnelId, onChoose }: TunnelChoiceProps) {
  const isUnknown = tunnelId !== "" && !tunnels.some(({ id }) => id === tunnelId);
  return (
    <select
      aria-label="Tunnel"
      className="tunnel-choice"
      value={tunnelId}
      onChange={({ currentTarget: { value } }) => onChoose(value)}
    >
      <option value="">All tunnels</option>
      {tunnels.map(({ id, name, subdomain }) => (
        <option key={id} value={id}>
          {name || subdomain}
        </option>
      ))}
      {isUnknown && <option value={tunnelId}>Unknown tunnel</option>}
    </select>
  );
}
