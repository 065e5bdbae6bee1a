/** A link to the captured requests that a filter selects. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

interface RequestsLinkProps {
  /** In the filter language of captured requests. */
  filter: string;
  /** Empty: of all tunnels. */
  tunnelId?: string;
  children: ReactNode;
}

export function RequestsLink({ filter, tunnelId = "", children }: RequestsLinkProps) {
  return (
    <Link to="/requests" search={{ filter, tunnel_id: tunnelId }}>
      {children}
    </Link>
  );
}
