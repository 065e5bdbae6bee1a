/**
 * The paths of the dashboard's pages. Some are also routes of the API: a browser that opens such a path gets the page, and
 * every other client the API's response.
 */
export const DASHBOARD_PATHS = [
  "/",
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
