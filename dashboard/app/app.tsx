/** The root of the page: what every route has around it. */
import { CSPProvider } from "@base-ui/react/csp-provider";
import { Tooltip } from "@base-ui/react/tooltip";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { ErrorBoundary } from "../ui/feedback/error-boundary.tsx";
import { Notifications } from "../ui/feedback/notifications.tsx";
import { LinkToken } from "./link-token.ts";
import { queryClient } from "./query-client.ts";
import { router } from "./router.tsx";

export function App({ linkToken }: { linkToken: string | null }) {
  return (
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <LinkToken value={linkToken}>
          <Tooltip.Provider>
            <ErrorBoundary>
              <RouterProvider router={router} />
            </ErrorBoundary>
            <Notifications />
          </Tooltip.Provider>
        </LinkToken>
      </QueryClientProvider>
    </CSPProvider>
  );
}
