/** The frame around the pages of a signed-in user: the navigation and the bar at the top. */
import { Dialog } from "@base-ui/react/dialog";
import { Link, Outlet, useLocation, useMatches } from "@tanstack/react-router";
import { Suspense, useEffect, useState } from "react";
import { ErrorBoundary } from "../../ui/feedback/error-boundary.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Skeleton } from "../../ui/feedback/skeleton.tsx";
import { AccountMenu } from "./account-menu.tsx";
import { InspectorDock, InspectorDockButton, useInspectorDock } from "./inspector-dock.tsx";
import { useNavigation } from "./navigation.ts";
import { OfflineBanner } from "./offline-banner.tsx";
import { OrganizationMenu } from "./organization-menu.tsx";
import { PaletteButton } from "./palette-button.tsx";
import { useScrollPosition } from "./scroll-position.ts";
import { ShortcutsDialog } from "./shortcuts-dialog.tsx";

export function Shell() {
  // The location changes before the code of its page is loaded; this changes together with the page.
  const shownPath = useMatches({ select: (matches) => matches.at(-1)?.pathname });
  const dock = useInspectorDock();
  useScrollPosition();
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <aside className="sidebar">
        <Brand />
        <Navigation />
      </aside>
      <header className="topbar">
        <NarrowNavigation />
        <OrganizationMenu />
        <span className="spring" />
        <PaletteButton />
        <InspectorDockButton {...dock} />
        <AccountMenu />
      </header>
      <main id="content" tabIndex={-1}>
        <OfflineBanner />
        <ErrorBoundary key={shownPath}>
          <Suspense fallback={<Skeleton lines={6} />}>
            <Outlet />
          </Suspense>
        </ErrorBoundary>
      </main>
      <InspectorDock {...dock} />
      <ShortcutsDialog />
    </div>
  );
}

function Brand() {
  return (
    <Link to="/" className="brand">
      Underpass
    </Link>
  );
}

function Navigation() {
  return (
    <nav aria-label="Pages">
      {useNavigation().map(({ title, items }) => (
        <div key={title} className="navigation-group">
          <h2>{title}</h2>
          <ul>
            {items.map(({ path, title: name, icon }) => (
              <li key={path}>
                <Link to={path} activeOptions={{ exact: path === "/" }}>
                  <Icon name={icon} />
                  {name}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

/** On screens of tablets and phones the navigation is behind a button. */
function NarrowNavigation() {
  const [isOpen, setOpen] = useState(false);
  const { pathname } = useLocation();
  useEffect(() => setOpen(false), [pathname]);
  return (
    <Dialog.Root open={isOpen} onOpenChange={setOpen}>
      <Dialog.Trigger className="quiet navigation-button" aria-label="Open the navigation">
        <Icon name="menu" />
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="drawer" aria-label="Navigation">
          <Brand />
          <Dialog.Close className="quiet" aria-label="Close the navigation">
            <Icon name="close" />
          </Dialog.Close>
          <Navigation />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
