/**
 * The paths of the dashboard's pages. Some are also routes of the API: a browser that opens such a path gets the page, and
 * every other client, including one that sends `Authorization`, gets the API's response. `:id` stands for any one segment.
 */
export const DASHBOARD_PATHS = [
  "/",
  "/requests",
  "/requests/:id",
  "/tunnels",
  "/tunnels/:id",
  "/networks",
  "/networks/:id",
  "/receivers",
  "/receivers/:id",
  "/tokens",
  "/projects",
  "/domains",
  "/names",
  "/metrics",
  "/members",
  "/audit",
  "/billing",
  "/me",
  "/setup",
  "/activate",
  "/invitation",
  "/reset",
  "/two-factor",
] as const;

export type DashboardPath = (typeof DASHBOARD_PATHS)[number];

const PATTERNS = DASHBOARD_PATHS.map((path) => new RegExp(`^${path.replace(":id", "[^/]+")}$`));

/** Whether a URL with this path is a page of the dashboard. */
export function isDashboardPath(path: string): boolean {
  return PATTERNS.some((pattern) => pattern.test(path));
}
