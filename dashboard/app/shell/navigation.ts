/** The pages that the navigation lists, in groups. */
import type { DashboardPath } from "../../../protocol/dashboard-paths.ts";
import type { Role } from "../../../protocol/roles.ts";
import type { IconName } from "../../ui/icon.tsx";

export interface NavigationItem {
  path: DashboardPath;
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
    items: [{ path: "/", title: "Overview", icon: "home" }],
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
