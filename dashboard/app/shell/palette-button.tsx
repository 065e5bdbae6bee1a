/** Opens the palette, as its shortcut does. The palette's code is loaded after the page. */
import { Suspense, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { ErrorBoundary } from "../../ui/feedback/error-boundary.tsx";
import { Icon } from "../../ui/icon.tsx";
import { createPreloadable } from "../../ui/preloadable.tsx";
import { formatKey, useShortcuts } from "../shortcuts.ts";

const { Component: Palette, usePreload } = createPreloadable(async () => {
  const { Palette: component } = await import("../palette/palette.tsx");
  return component;
});

const KEY = "Mod+k";

export function PaletteButton() {
  const [isOpen, setOpen] = useState(false);
  const [wasOpened, setOpened] = useState(false);
  usePreload();
  const open = () => {
    setOpened(true);
    setOpen(true);
  };
  useShortcuts("Everywhere", [
    { keys: [KEY], title: "Find anything", act: () => (isOpen ? setOpen(false) : open()) },
  ]);
  return (
    <>
      <Button className="find" aria-keyshortcuts="Meta+K Control+K" onClick={open}>
        <Icon name="search" />
        <span>Find anything</span>
        <kbd aria-hidden="true">{formatKey(KEY)}</kbd>
      </Button>
      {wasOpened && (
        <ErrorBoundary>
          <Suspense>
            <Palette isOpen={isOpen} onClose={() => setOpen(false)} />
          </Suspense>
        </ErrorBoundary>
      )}
    </>
  );
}
