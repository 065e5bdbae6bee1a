/** Creates a tunnel for an agent that connects later. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { DEFAULT_PROJECT_SLUG, SUBDOMAIN_MAX_CHARS } from "../../../../protocol/names.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { projectsQuery } from "../../../api/organization/projects.ts";
import { call } from "../../../api/session.ts";
import { tunnelsQuery } from "../../../api/tunnels.ts";
import { DialogButton } from "../../../ui/forms/dialog.tsx";
import { useMe } from "../../../app/session-state.ts";
import { SelectField, TextField } from "../../../ui/forms/fields.tsx";
import type { GetValue } from "../../../ui/forms/form.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { formatCount } from "../../../ui/numbers.ts";

const PROTOCOLS = [
  { value: "http", label: "HTTP" },
  { value: "https", label: "HTTPS: the local server speaks TLS" },
  { value: "tcp", label: "TCP: any service, at a public port" },
];

/** The values are seconds. */
const LIFETIMES = [
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
  { value: "2592000", label: "30 days" },
];

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
  if (maxSeconds === null) return [{ value: "", label: "No expiry" }, ...LIFETIMES];
  const shorter = LIFETIMES.filter(({ value }) => Number(value) < maxSeconds);
  return [{ value: "", label: `${formatLifetime(maxSeconds)} (plan limit)` }, ...shorter];
}

function formatLifetime(seconds: number): string {
  const known = LIFETIMES.find(({ value }) => Number(value) === seconds);
  return known?.label ?? `${formatCount(Math.round(seconds / 3600))} hours`;
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
