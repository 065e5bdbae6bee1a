/** The fields that filter the list of tokens. Their values are in the URL. */
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { useQueryParameters, useSetQueryParameters } from "../../app/query-parameters.ts";
import { FilterBar, SearchFilter, SelectFilter } from "../../ui/forms/filters.tsx";

const KINDS = [
  { value: "", label: "All kinds" },
  { value: "agent", label: "For agents" },
  { value: "master", label: "Master keys" },
];
const STATES = [
  { value: "", label: "Valid" },
  { value: "ended", label: "Revoked or expired" },
  { value: "all", label: "All states" },
];

interface TokenFilterBarProps {
  tokens: readonly Token[];
}

export function TokenFilterBar({ tokens }: TokenFilterBarProps) {
  const { text = "", kind = "", project = "", state = "" } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const slugs = new Set(tokens.flatMap(({ projectSlug }) => projectSlug ?? []));
  if (project !== "") slugs.add(project);
  const projects = [...slugs].sort().map((slug) => ({ value: slug, label: slug }));
  return (
    <FilterBar label="Tokens">
      <SearchFilter
        label="Filter the tokens"
        placeholder="Filter by name, ID or allowed name"
        value={text}
        onChange={(next) => setParameters({ text: next })}
      />
      <SelectFilter
        label="Kind"
        value={kind}
        options={KINDS}
        onChange={(next) => setParameters({ kind: next })}
      />
      {projects.length > 0 && (
        <SelectFilter
          label="Project"
          value={project}
          options={[{ value: "", label: "All projects" }, ...projects]}
          onChange={(next) => setParameters({ project: next })}
        />
      )}
      <SelectFilter
        label="State"
        value={state}
        options={STATES}
        onChange={(next) => setParameters({ state: next })}
      />
    </FilterBar>
  );
}
