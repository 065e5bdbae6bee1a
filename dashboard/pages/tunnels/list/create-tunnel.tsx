/** Creates a tunnel for an agent that connects later. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { DEFAULT_PROJECT_SLUG, SUBDOMAIN_MAX_CHARS } from "../../../../protocol/names.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { DAY_MS, HOUR_MS } from "../../../../shared/time.ts";
import { projectsQuery } from "../../../api/organization/projects.ts";
import { call } from "../../../api/session.ts";
import { tunnelsQuery } from "../../../api/tunnels.ts";
import { DialogButton } from "../../../ui/forms/dialog.tsx";
import { useMe } from "../../../app/session-state.ts";
import { SelectField, TextField } from "../../../ui/forms/fields.tsx";
import type { GetValue } from "../../../ui/forms/form.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { formatDaysOrHours } from "../../../ui/numbers.ts";

const PROTOCOLS = [
  { value: "http", label: "HTTP" },
  { value: "https", label: "HTTPS: the local server speaks TLS" },
  { value: "tcp", label: "TCP: any service, at a public port" },
];

const LIFETIMES_MS = [HOUR_MS, DAY_MS, 7 * DAY_MS, 30 * DAY_MS];

export function CreateTunnelButton() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <DialogButton
      button={{ children: "Create a tunnel", kind: "primary" }}
      title="Create a tunnel"
      link="create"
      submit="Create"
      onSubmit={async (value) => {
        const tunnel = await call<Tunnel>("POST", "/tunnels", toCreateRequest(value));
        await queries.invalidateQueries(tunnelsQuery);
        notify(`${tunnel.name} was created.`);
        await navigate({ to: "/tunnels/$id", params: { id: tunnel.id } });
      }}
    >
      <CreateTunnelFields />
    </DialogButton>
  );
}

function CreateTunnelFields() {
  const projects = useQuery(projectsQuery);
  const [protocol, setProtocol] = useState("http");
  const { tunnel_ttl_seconds: maxSeconds } = useMe().entitlements;
  const slugs = projects.data?.map(({ slug }) => slug) ?? [];
  return (
    <>
      <TextField
        name="localPort"
        label="Local port"
        type="number"
        min={1}
        max={65_535}
        placeholder="3000"
        hint="Where the server on your machine listens."
      />
      <TextField
        name="subdomain"
        label="Name"
        required={false}
        autoComplete="off"
        spellCheck={false}
        maxLength={SUBDOMAIN_MAX_CHARS}
        hint="The first part of the address. Leave empty for a random name."
      />
      <SelectField name="protocol" label="Protocol" options={PROTOCOLS} onChoose={setProtocol} />
      {protocol === "tcp" && (
        <TextField
          name="publicPort"
          label="Public port"
          type="number"
          min={1}
          max={65_535}
          required={false}
          hint="Leave empty for a free one."
        />
      )}
      {slugs.length > 1 && (
        <SelectField
          name="projectSlug"
          label="Project"
          options={slugs}
          chosen={DEFAULT_PROJECT_SLUG}
        />
      )}
      <SelectField name="ttlSeconds" label="Lifetime" options={listLifetimes(maxSeconds)} />
    </>
  );
}

/** @param maxSeconds the plan's limit; null: there is none. */
function listLifetimes(maxSeconds: number | null) {
  const maxMs = maxSeconds === null ? Infinity : maxSeconds * 1000;
  const longest = maxSeconds === null ? "No expiry" : `${formatDaysOrHours(maxMs)} (plan limit)`;
  const shorter = LIFETIMES_MS.filter((ms) => ms < maxMs).map((ms) => ({
    value: String(ms / 1000),
    label: formatDaysOrHours(ms),
  }));
  return [{ value: "", label: longest }, ...shorter];
}

/** The body of the request to the API, without the fields that the user left empty. */
function toCreateRequest(value: GetValue): object {
  const fields = {
    localPort: Number(value("localPort")),
    subdomain: value("subdomain").trim(),
    protocol: value("protocol"),
    publicPort: Number(value("publicPort")),
    projectSlug: value("projectSlug"),
    ttlSeconds: Number(value("ttlSeconds")),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, each]) => each !== "" && each !== 0));
}
