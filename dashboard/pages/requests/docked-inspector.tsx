/** The inspector at the bottom of another page. Its filter is not in the URL, which belongs to that page. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Splitter, useStoredPercent } from "../../ui/layout/splitter.tsx";
import { Inspector } from "./inspector.tsx";
import type { InspectorParameters } from "./list/use-request-view.ts";

const TOP_KEY = "underpass-dock-top";
const TOP_PERCENT = 60;

export function DockedInspector({ onClose }: { onClose: () => void }) {
  const [parameters, setParameters] = useState<InspectorParameters>({});
  const [topPercent, setTopPercent] = useStoredPercent(TOP_KEY, TOP_PERCENT);

  function change(changes: InspectorParameters): void {
    const entries = Object.entries({ ...parameters, ...changes });
    setParameters(Object.fromEntries(entries.filter(([, value]) => value !== "")));
  }
  return (
    <section className="dock" aria-label="Inspector" style={{ height: `${100 - topPercent}dvh` }}>
      <Splitter
        label="Height of the inspector"
        orientation="horizontal"
        area="window"
        percent={topPercent}
        onMove={setTopPercent}
      />
      <header className="dock-header">
        <h2>Requests</h2>
        <Link to="/requests" search={{ ...parameters }}>
          Open the page
        </Link>
        <span className="spring" />
        <Button kind="quiet" aria-label="Close the inspector" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </header>
      <Inspector parameters={parameters} setParameters={change} isDocked />
    </section>
  );
}
