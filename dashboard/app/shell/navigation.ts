/** The pages that the navigation lists, in groups. */
import type { DashboardPath } from "../../../protocol/dashboard-paths.ts";
import type { Role } from "../../../protocol/roles.ts";
import type { Me } from "../../../protocol/schemas/accounts/accounts.ts";
import { useMe } from "../session-state.ts";
import type { IconName } from "../../ui/icon.tsx";

interface NavigationItem {
  path: Exclude<DashboardPath, `${string}:id`>;
  title: string;
  icon: IconName;
  /** Which roles see the page; all by default. The API enforces this; the navigation only hides the link. */
  roles?: readonly Role[];
  /** The page is only of use on a server that sells plans. */
  requiresBilling?: true;
}

interface NavigationGroup {
  title: string;
  items: readonly NavigationItem[];
}

const NAVIGATION: readonly NavigationGroup[] = [
  {
    title: "Traffic",
    items: [
      { path: "/", title: "Overview", icon: "home" },
      { path: "/requests", title: "Requests", icon: "requests" },
      { path: "/metrics", title: "Metrics", icon: "chart" },
    ],
  },
  {
    title: "Connect",
    items: [
      { path: "/tunnels", title: "Tunnels", icon: "tunnel" },
      { path: "/networks", title: "Networks", icon: "network" },
      { path: "/receivers", title: "Webhook receivers", icon: "receiver" },
    ],
  },
  {
    title: "Set up",
    items: [
      { path: "/tokens", title: "Tokens", icon: "token" },
      { path: "/projects", title: "Projects", icon: "project" },
      { path: "/domains", title: "Custom domains", icon: "domain" },
      { path: "/names", title: "Reserved names", icon: "name" },
    ],
  },
  {
    title: "Organization",
    items: [
      { path: "/members", title: "Members", icon: "people" },
      { path: "/audit", title: "Audit log", icon: "list" },
      { path: "/billing", title: "Billing", icon: "card", roles: ["owner"], requiresBilling: true },
    ],
  },
];

/** The groups with the pages that the signed-in user can use. */
export function useNavigation(): NavigationGroup[] {
  const me = useMe();
  return NAVIGATION.map((group) => ({
    ...group,
    items: group.items.filter((item) => isShown(item, me)),
  }));
}

function isShown({ roles, requiresBilling }: NavigationItem, me: Me): boolean {
  if (requiresBilling && me.billing_mode === "none") return false;
  return roles?.includes(me.active_org.role) ?? true;
}
