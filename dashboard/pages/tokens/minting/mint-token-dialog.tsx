/** The dialog to mint a token. The chosen preset decides which fields it has, and their initial values. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  MASTER_KEY_TTL_MAX_DAYS,
  TOKEN_BANDWIDTH_DEFAULT_MBPS,
  TOKEN_NAME_MAX_CHARS,
  TOKEN_TTL_MAX_HOURS,
  TOKEN_TUNNELS_DEFAULT,
} from "../../../../protocol/limits.ts";
import { DEFAULT_PROJECT_SLUG } from "../../../../protocol/names.ts";
import { projectsQuery } from "../../../api/organization/projects.ts";
import { tokensQuery } from "../../../api/organization/tokens.ts";
import { useHasRole } from "../../../app/roles.ts";
import { OpenFormDialog } from "../../../ui/forms/dialog.tsx";
import { ChoiceField, SelectField, TextField } from "../../../ui/forms/fields.tsx";
import { BudgetField } from "../budget.tsx";
import { LIFETIME_UNITS, mintToken, type LifetimeUnit } from "./mint-token.ts";
import { useShowNewToken } from "./new-token-dialog.tsx";
import { TOKEN_PRESETS, type TokenPreset } from "./presets.ts";

const LIFETIME_MAX: Record<LifetimeUnit, number> = {
  hours: TOKEN_TTL_MAX_HOURS,
  days: TOKEN_TTL_MAX_HOURS / 24,
};

interface MintTokenDialogProps {
  isOpen: boolean;
  onClose: () => void;
  /** The slug of the only project that the token is for; by default the user chooses. */
  project?: string;
}

export function MintTokenDialog({ isOpen, onClose, project }: MintTokenDialogProps) {
  const queries = useQueryClient();
  const showNewToken = useShowNewToken();
  return (
    <OpenFormDialog
      isOpen={isOpen}
      onClose={onClose}
      title={project === undefined ? "Mint a token" : `Mint a token for ${project}`}
      submit="Mint"
      onSubmit={async (value) => {
        showNewToken(await mintToken(value));
        await queries.invalidateQueries(tokensQuery);
      }}
    >
      <MintFields project={project} />
    </OpenFormDialog>
  );
}

/** A token of a project is usually for CI. */
function getInitialPreset(project: string | undefined): TokenPreset {
  const id = project === undefined ? "agent" : "ci";
  return TOKEN_PRESETS.find((preset) => preset.id === id)!;
}

function MintFields({ project }: { project: string | undefined }) {
  const canSetBudget = useHasRole("admin");
  const [preset, setPreset] = useState(getInitialPreset(project));
  return (
    <>
      <PresetField preset={preset} onChoose={setPreset} isForProject={project !== undefined} />
      <div className="mint-fields">
        <TextField
          name="name"
          label="Name"
          maxLength={TOKEN_NAME_MAX_CHARS}
          autoComplete="off"
          placeholder={preset.id === "ci" ? "ci" : "build-machine"}
        />
        <LifetimeFields key={preset.id} preset={preset} />
        {preset.id === "master" ? null : <ScopeFields project={project} />}
        {canSetBudget && <BudgetField key={`budget ${preset.id}`} budget={preset.budget} />}
      </div>
    </>
  );
}

interface PresetFieldProps {
  preset: TokenPreset;
  onChoose: (preset: TokenPreset) => void;
  /** Tokens of a project can be neither master keys nor read the logs of the organization. */
  isForProject: boolean;
}

function PresetField({ preset, onChoose, isForProject }: PresetFieldProps) {
  // A token for reading is one with a budget of 0, and only admins set budgets.
  const canSetBudget = useHasRole("admin");
  const presets = TOKEN_PRESETS.filter(({ id }) => {
    if (id === "master") return !isForProject;
    return id !== "reading" || (canSetBudget && !isForProject);
  });
  return (
    <ChoiceField
      name="preset"
      label="What is it for?"
      choices={presets.map(({ id, title, about }) => ({ value: id, title, about }))}
      chosen={preset.id}
      onChoose={(id) => onChoose(presets.find((each) => each.id === id)!)}
    />
  );
}

function LifetimeFields({ preset }: { preset: TokenPreset }) {
  const [unit, setUnit] = useState(preset.unit);
  const isMaster = preset.id === "master";
  const units = isMaster ? ["days"] : LIFETIME_UNITS;
  return (
    <div className="field-pair">
      <TextField
        name="lifetime"
        label="Valid for"
        type="number"
        min={1}
        max={isMaster ? MASTER_KEY_TTL_MAX_DAYS : LIFETIME_MAX[unit]}
        step={1}
        defaultValue={preset.lifetime}
      />
      <SelectField
        name="unit"
        label="Unit"
        options={units}
        chosen={unit}
        onChoose={(next) => setUnit(next as LifetimeUnit)}
      />
    </div>
  );
}

function ScopeFields({ project }: { project: string | undefined }) {
  const { data: projects = [] } = useQuery(projectsQuery);
  const [slug, setSlug] = useState(project ?? "");
  const suffix = slug === "" || slug === DEFAULT_PROJECT_SLUG ? "" : `-${slug}`;
  return (
    <>
      {project === undefined ? (
        <SelectField
          name="project"
          label="Project"
          options={[
            { value: "", label: "Every project" },
            ...projects.map((each) => ({ value: each.slug, label: `Only ${each.slug}` })),
          ]}
          chosen={slug}
          onChoose={setSlug}
        />
      ) : (
        <input type="hidden" name="project" value={project} />
      )}
      {/* The routes for the two kinds of tokens name this field differently, and report errors under that name. */}
      <TextField
        name={slug === "" ? "allowedSubdomains" : "allowed_subdomains"}
        key={slug === "" ? "all" : "project"}
        label="Allowed names"
        required={false}
        autoComplete="off"
        spellCheck={false}
        placeholder="pr-* demo"
        hint={
          suffix === ""
            ? "Separated by spaces, * for any characters. Leave empty for any name."
            : `Separated by spaces, * for any characters; ${suffix} is added. Leave empty for any name.`
        }
      />
      {slug === "" && (
        <div className="field-pair">
          <TextField
            name="tunnelQuota"
            label="Tunnel limit"
            type="number"
            min={1}
            step={1}
            defaultValue={TOKEN_TUNNELS_DEFAULT}
          />
          <TextField
            name="bandwidthLimitMbps"
            label="Mbit/s per tunnel"
            type="number"
            min={1}
            step={1}
            defaultValue={TOKEN_BANDWIDTH_DEFAULT_MBPS}
          />
        </div>
      )}
    </>
  );
}
