/** The routes of the dashboard. Each page's code is loaded when it is first opened, or when a link to it gets the focus. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from "@tanstack/react-router";
import type { DashboardPath } from "../../protocol/dashboard-paths.ts";
import { loadPage } from "../ui/feedback/load-error.ts";
import { NotFoundPage } from "./not-found-page.tsx";
import { SessionGate } from "./session-gate.tsx";
import { Shell } from "./shell/shell.tsx";
import { parseSearch, stringifySearch } from "./query-parameters.ts";

type PageLoader = Parameters<typeof lazyRouteComponent>[0];

interface Page {
  /** `public`: no sign-in. `step`: a single step for a signed-in user. `shell`: with the navigation. */
  frame: "public" | "step" | "shell";
  load: PageLoader;
}

/** One for each path for which the Worker serves the dashboard. */
const PAGES: Record<DashboardPath, Page> = {
  "/setup": { frame: "public", load: () => import("../pages/sign-in/setup-page.tsx") },
  "/reset": { frame: "public", load: () => import("../pages/sign-in/reset-page.tsx") },
  "/two-factor": {
    frame: "public",
    load: () => import("../pages/sign-in/two-factor-removal-page.tsx"),
  },
  "/activate": { frame: "step", load: () => import("../pages/sign-in/activate-page.tsx") },
  "/invitation": { frame: "step", load: () => import("../pages/sign-in/invitation-page.tsx") },
  "/": { frame: "shell", load: () => import("../pages/overview/overview-page.tsx") },
  "/requests": { frame: "shell", load: () => import("../pages/requests/requests-page.tsx") },
  "/requests/:id": { frame: "shell", load: () => import("../pages/requests/request-page.tsx") },
  "/tunnels": { frame: "shell", load: () => import("../pages/tunnels/tunnels-page.tsx") },
  "/tunnels/:id": { frame: "shell", load: () => import("../pages/tunnels/tunnel-page.tsx") },
  "/networks": { frame: "shell", load: () => import("../pages/networks/networks-page.tsx") },
  "/networks/:id": { frame: "shell", load: () => import("../pages/networks/network-page.tsx") },
  "/receivers": { frame: "shell", load: () => import("../pages/receivers/receivers-page.tsx") },
  "/receivers/:id": { frame: "shell", load: () => import("../pages/receivers/receiver-page.tsx") },
  "/tokens": { frame: "shell", load: () => import("../pages/tokens/tokens-page.tsx") },
  "/projects": { frame: "shell", load: () => import("../pages/projects/projects-page.tsx") },
  "/domains": { frame: "shell", load: () => import("../pages/domains/domains-page.tsx") },
  "/names": { frame: "shell", load: () => import("../pages/domains/names-page.tsx") },
  "/metrics": { frame: "shell", load: () => import("../pages/metrics/metrics-page.tsx") },
  "/members": { frame: "shell", load: () => import("../pages/members/members-page.tsx") },
  "/audit": { frame: "shell", load: () => import("../pages/audit/audit-page.tsx") },
  "/billing": { frame: "shell", load: () => import("../pages/billing/billing-page.tsx") },
  "/me": { frame: "shell", load: () => import("../pages/me/me-page.tsx") },
};

const rootRoute = createRootRoute({ component: Outlet, notFoundComponent: NotFoundPage });
const gate = createRoute({ getParentRoute: () => rootRoute, id: "gate", component: SessionGate });
const shell = createRoute({ getParentRoute: () => gate, id: "shell", component: Shell });

function createPages(parent: typeof rootRoute | typeof gate | typeof shell, frame: Page["frame"]) {
  return Object.entries(PAGES)
    .filter(([, page]) => page.frame === frame)
    .map(([path, { load }]) =>
      createRoute({
        getParentRoute: () => parent,
        path: path.replace(":id", "$id"),
        component: lazyRouteComponent(() => loadPage(load), "Page"),
      }),
    );
}

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    ...createPages(rootRoute, "public"),
    gate.addChildren([
      ...createPages(gate, "step"),
      shell.addChildren(createPages(shell, "shell")),
    ]),
  ]),
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  scrollRestoration: true,
});
