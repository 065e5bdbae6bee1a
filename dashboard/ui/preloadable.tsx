/** Components whose code is loaded after the page that may need them. */
import { lazy, useEffect, useState, type ComponentType } from "react";

/** After the page has appeared. */
const PRELOAD_DELAY_MS = 500;

interface Preloadable<Props extends object> {
  /** Loads its code if it is not there yet. It must be in a `Suspense`. */
  Component: ComponentType<Props>;
  /** Loads the code shortly after the component that calls this has appeared. */
  usePreload: () => void;
}

/**
 * React shows the fallback of a lazy component for 300 ms, even if its code was loaded before. So once the code is loaded, this
 * component renders it directly.
 */
export function createPreloadable<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): Preloadable<Props> {
  let loaded: ComponentType<Props> | undefined;
  const loadOnce = async () => (loaded ??= await load());
  const Lazy: ComponentType<Props> = lazy(async () => ({ default: await loadOnce() }));

  function Component(props: Props) {
    const [Loaded] = useState(() => loaded ?? Lazy);
    return <Loaded {...props} />;
  }

  function usePreload(): void {
    useEffect(() => {
      // If it fails, the component loads the code again.
      const timer = setTimeout(() => loadOnce().catch(() => {}), PRELOAD_DELAY_MS);
      return () => clearTimeout(timer);
    }, []);
  }

  return { Component, usePreload };
}
