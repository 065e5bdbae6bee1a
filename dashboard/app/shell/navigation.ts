/** The pages that the navigation lists, in groups. */
import type { DashboardPath } from "../../../protocol/dashboard-paths.ts";
import type { Role } from "../../../protocol/roles.ts";
import type { IconName } from "../../ui/icon.tsx";

export interface NavigationItem {
  path: Exclude<DashboardPath, `${string}:id`>;
  title: string;
  icon: IconName;
  /** Which roles see the page; all by default. The API enforces this; the navigation only hides the link. */
  roles?: readonly Role[];
}

export interface NavigationGroup {
  title: string;
  items: readonly NavigationItem[];
}

export const NAVIGATION: readonly NavigationGroup[] = [
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
      { path: "/billing", title: "Billing", icon: "card", roles: ["owner"] },
    ],
  },
];
