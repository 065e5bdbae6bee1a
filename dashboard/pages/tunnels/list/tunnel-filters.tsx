/** The fields that filter the list of tunnels. `/` moves the focus to the text. */
import { useRef, useState } from "react";
import { TUNNEL_STATES } from "../../../api/tunnels.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../app/search.ts";
import { useShortcuts } from "../../../app/shortcuts.ts";
import { Button } from "../../../ui/button.tsx";
import { STATE_TEXTS } from "../tunnel-badges.tsx";

const NO_FILTER = { text: "", state: "", project: "" };

export function TunnelFilters({ projects }: { projects: readonly string[] }) {
  const { text, state, project } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const input = useRef<HTMLInputElement>(null);
  const [clears, setClears] = useState(0);
  useShortcuts("Tunnels", [
    { keys: ["/"], title: "Filter the tunnels", act: () => input.current?.focus() },
  ]);
  const isFiltered = [text, state, project].some((value) => value !== undefined);
  return (
    <div className="tunnel-filters" role="search" aria-label="Tunnels">
      <input
        key={clears}
        ref={input}
        type="search"
        aria-label="Filter by name or address"
        placeholder="Filter by name or address"
        defaultValue={text}
        spellCheck={false}
        onChange={(event) => setParameters({ text: event.currentTarget.value })}
      />
      <select
        aria-label="State"
        value={state ?? ""}
        onChange={(event) => setParameters({ state: event.currentTarget.value })}
      >
        <option value="">Every state</option>
        {TUNNEL_STATES.map((each) => (
          <option key={each} value={each}>
            {STATE_TEXTS[each].label}
          </option>
        ))}
      </select>
      <select
        aria-label="Project"
        value={project ?? ""}
        onChange={(event) => setParameters({ project: event.currentTarget.value })}
      >
        <option value="">Every project</option>
        {projects.map((slug) => (
          <option key={slug} value={slug}>
            {slug}
          </option>
        ))}
      </select>
      {isFiltered && (
        <Button
          kind="quiet"
          onClick={() => {
            setParameters(NO_FILTER);
            setClears(clears + 1);
            input.current?.focus();
          }}
        >
          Clear
        </Button>
      )}
    </div>
  );
}
