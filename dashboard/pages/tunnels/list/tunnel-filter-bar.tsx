/** The fields that filter and sort the list of tunnels. */
import { TUNNEL_STATES } from "../../../api/tunnels.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../app/query-parameters.ts";
import { Button } from "../../../ui/button.tsx";
import { FilterBar, SearchFilter, SelectFilter } from "../../../ui/forms/filters.tsx";
import { STATE_TEXTS } from "../tunnel-badges.tsx";
import { getTunnelOrder, TUNNEL_ORDERS } from "./tunnel-filter.ts";

const NO_FILTER = { text: "", state: "", project: "" };

const STATES = [
  { value: "", label: "All states" },
  ...TUNNEL_STATES.map((state) => ({ value: state, label: STATE_TEXTS[state].label })),
];

export function TunnelFilterBar({ projects }: { projects: readonly string[] }) {
  const { text = "", state = "", project = "", order } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const slugs = projects.map((slug) => ({ value: slug, label: slug }));
  return (
    <FilterBar label="Tunnels">
      <SearchFilter
        label="Filter the tunnels"
        placeholder="Filter by name or address"
        value={text}
        onChange={(typed) => setParameters({ text: typed })}
      />
      <SelectFilter
        label="State"
        value={state}
        options={STATES}
        onChange={(chosen) => setParameters({ state: chosen })}
      />
      <SelectFilter
        label="Project"
        value={project}
        options={[{ value: "", label: "All projects" }, ...slugs]}
        onChange={(chosen) => setParameters({ project: chosen })}
      />
      <SelectFilter
        label="Order"
        value={getTunnelOrder(order).value}
        options={TUNNEL_ORDERS}
        onChange={(chosen) => setParameters({ order: chosen })}
      />
      {text + state + project !== "" && (
        <Button kind="quiet" onClick={() => setParameters(NO_FILTER)}>
          Clear
        </Button>
      )}
    </FilterBar>
  );
}
