/** The table of tunnels. */
import { Link } from "@tanstack/react-router";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { formatBytes, formatCount } from "../../../ui/numbers.ts";
import { Table, type Column } from "../../../ui/table.tsx";
import { LastSeen } from "../last-seen.tsx";
import { PROTOCOL_NAMES } from "../protocol-names.ts";
import { PublicAddress } from "../public-address.tsx";
import { GateBadges, StateBadge } from "../tunnel-badges.tsx";
import { TunnelMenu } from "./tunnel-menu.tsx";

const COLUMNS: readonly Column<Tunnel>[] = [
  { title: "Tunnel", render: (tunnel) => <NameCell tunnel={tunnel} /> },
  { title: "State", render: (tunnel) => <StateBadge tunnel={tunnel} /> },
  {
    title: "Gates",
    isSecondary: true,
    render: (tunnel) => (
      <div className="gates">
        <GateBadges tunnel={tunnel} />
      </div>
    ),
  },
  { title: "Project", isSecondary: true, render: ({ projectSlug }) => projectSlug },
  {
    title: "Protocol",
    isSecondary: true,
    render: ({ protocol }) => PROTOCOL_NAMES[protocol],
  },
  {
    title: "Requests",
    align: "end",
    isSecondary: true,
    render: ({ totalRequests }) => formatCount(totalRequests),
  },
  {
    title: "Traffic",
    align: "end",
    isSecondary: true,
    render: ({ bytesIn, bytesOut }) => (
      <span title={`${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out`}>
        {formatBytes(bytesIn + bytesOut)}
      </span>
    ),
  },
  {
    title: "Last seen",
    align: "end",
    isSecondary: true,
    render: (tunnel) => <LastSeen tunnel={tunnel} />,
  },
  {
    title: "Actions",
    align: "end",
    isTitleHidden: true,
    render: (tunnel) => <TunnelMenu tunnel={tunnel} />,
  },
];

export function TunnelTable({ tunnels }: { tunnels: readonly Tunnel[] }) {
  return (
    <div className="tunnel-table">
      <Table
        caption="Tunnels, newest first"
        columns={COLUMNS}
        entries={tunnels}
        getKey={({ id }) => id}
      />
    </div>
  );
}

function NameCell({ tunnel }: { tunnel: Tunnel }) {
  return (
    <>
      <Link
        to="/tunnels/$id"
        params={{ id: tunnel.id }}
        className="tunnel-name"
        title={tunnel.name}
      >
        {tunnel.name}
      </Link>
      <PublicAddress tunnel={tunnel} />
    </>
  );
}
