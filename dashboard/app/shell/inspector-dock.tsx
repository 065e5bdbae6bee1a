/**
 * The live list of requests at the bottom of every page. It is connected only while it is open, and its code is loaded
 * after the page.
 */
import { useLocation } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { readStored, writeStored } from "../../api/browser-storage.ts";
import { Button } from "../../ui/button.tsx";
import { ErrorBoundary } from "../../ui/feedback/error-boundary.tsx";
import { Skeleton } from "../../ui/feedback/skeleton.tsx";
import { Icon } from "../../ui/icon.tsx";
import { createPreloadable } from "../../ui/preloadable.tsx";
import { useShortcuts } from "../shortcuts.ts";

const OPEN_KEY = "underpass-dock-open";

const { Component: DockedInspector, usePreload } = createPreloadable(async () => {
  const { DockedInspector: component } = await import("../../pages/requests/docked-inspector.tsx");
  return component;
});

interface InspectorDockState {
  /** False on the page of requests, which is an inspector itself. */
  isAvailable: boolean;
  isOpen: boolean;
  toggle: () => void;
}

/** The state of the dock. This browser remembers whether it is open; the key `i` opens and closes it. */
export function useInspectorDock(): InspectorDockState {
  const { pathname } = useLocation();
  const isAvailable = pathname !== "/requests";
  const [isOpen, setOpen] = useState(() => readStored("localStorage", OPEN_KEY) !== null);
  function toggle(): void {
    setOpen(!isOpen);
    writeStored("localStorage", OPEN_KEY, isOpen ? null : "1");
  }
  const shortcut = { keys: ["i"], title: "Show or hide the inspector", act: toggle };
  useShortcuts("Inspector", isAvailable ? [shortcut] : []);
  return { isAvailable, isOpen, toggle };
}

export function InspectorDockButton({ isAvailable, isOpen, toggle }: InspectorDockState) {
  usePreload();
  if (!isAvailable) return null;
  return (
    <Button
      kind="quiet"
      className="wide-only"
      aria-label="Inspector"
      aria-keyshortcuts="i"
      aria-expanded={isOpen}
      title="Inspector (i)"
      onClick={toggle}
    >
      <Icon name="requests" />
    </Button>
  );
}

export function InspectorDock({ isAvailable, isOpen, toggle }: InspectorDockState) {
  if (!isAvailable || !isOpen) return null;
  return (
    <ErrorBoundary>
      <Suspense fallback={<Skeleton lines={4} />}>
        <DockedInspector onClose={toggle} />
      </Suspense>
    </ErrorBoundary>
  );
}
