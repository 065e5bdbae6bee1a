/** The table of tunnels. */
import { Link } from "@tanstack/react-router";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { formatBytes, formatCount } from "../../../ui/numbers.ts";
import { Detail } from "../../../ui/section.tsx";
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
  {
    title: "Project",
    isSecondary: true,
    render: ({ projectSlug, protocol }) => (
      <>
        {projectSlug}
        <Detail>{PROTOCOL_NAMES[protocol]}</Detail>
      </>
    ),
  },
  {
    title: "Requests",
    align: "end",
    isSecondary: true,
    render: ({ totalRequests, bytesIn, bytesOut }) => (
      <>
        {formatCount(totalRequests)}
        <Detail>
          <span title={`${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out`}>
            {formatBytes(bytesIn + bytesOut)}
          </span>
        </Detail>
      </>
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

interface TunnelTableProps {
  tunnels: readonly Tunnel[];
  /** The order of the rows, for screen readers. */
  order: string;
}

export function TunnelTable({ tunnels, order }: TunnelTableProps) {
  return (
    <div className="tunnel-table">
      <Table
        caption={`Tunnels: ${order}`}
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
