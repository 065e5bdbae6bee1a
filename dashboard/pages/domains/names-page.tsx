/** /names: subdomains of the service that are reserved for the organization. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { SUBDOMAIN_MAX_CHARS } from "../../../protocol/names.ts";
import type { ReservedSubdomain } from "../../../protocol/schemas/domains/reserved-subdomains.ts";
import { reservedSubdomainsQuery } from "../../api/domains.ts";
import { call } from "../../api/session.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { useHasRole } from "../../app/roles.ts";
import { useMe } from "../../app/session-state.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { formatAgentCommand } from "../../ui/text/agent-command.ts";
import { EmptyState } from "../../ui/feedback/empty-state.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Skeleton } from "../../ui/feedback/skeleton.tsx";
import { DialogButton } from "../../ui/forms/dialog.tsx";
import { TextField } from "../../ui/forms/fields.tsx";
import { formatCount, formatQuantity } from "../../ui/numbers.ts";
import { PageFrame } from "../../ui/page.tsx";
import { Rows, Section } from "../../ui/section.tsx";
import { NameRow } from "./name-row.tsx";
import "./domains.css";

export function Page() {
  const canChange = useHasRole("member");
  const names = useQuery(reservedSubdomainsQuery);
  // The row of a name that no tunnel uses also has a command, so rows would grow or shrink when the tunnels arrive.
  const areTunnelsLoading = useQuery(tunnelsQuery).isPending;
  const { subdomain = "shop" } = names.data?.[0] ?? {};
  return (
    <PageFrame
      title="Reserved names"
      about="Only your organization can open tunnels at these names, even while no agent is connected."
      actions={canChange ? <ReserveButton /> : undefined}
    >
      <QueryContent query={names} lines={6}>
        {(list) => {
          if (list.length === 0) return <NoNames />;
          return areTunnelsLoading ? <Skeleton lines={6} /> : <Names names={list} />;
        }}
      </QueryContent>
      <CommandLine
        changes={[`http 3000 --subdomain ${subdomain}`]}
        requests={[
          { label: "List the names", path: "/reserved-subdomains" },
          {
            label: "Reserve one",
            method: "POST",
            path: "/reserved-subdomains",
            body: { subdomain },
          },
        ]}
      />
    </PageFrame>
  );
}

function NoNames() {
  const { max_reserved_subdomains: max } = useMe().entitlements;
  const title = "No name is reserved yet";
  if (!useHasRole("member")) return <EmptyState title={title} />;
  return (
    <EmptyState title={title} commands={[formatAgentCommand("http 3000 --subdomain shop")]}>
      <p>
        {max === 0
          ? "Your plan includes no reserved names. A name is also yours while a tunnel has it:"
          : "Reserve a name here to keep it. A name is also yours while a tunnel has it:"}
      </p>
    </EmptyState>
  );
}

function ReserveButton() {
  const queries = useQueryClient();
  return (
    <DialogButton
      button={{ children: "Reserve a name", kind: "primary" }}
      title="Reserve a name"
      submit="Reserve"
      onSubmit={async (value) => {
        const subdomain = value("subdomain").trim().toLowerCase();
        await call("POST", "/reserved-subdomains", { subdomain });
        await queries.invalidateQueries(reservedSubdomainsQuery);
        notify(`${subdomain} is reserved.`);
      }}
    >
      <TextField
        name="subdomain"
        label="Name"
        placeholder="shop"
        maxLength={SUBDOMAIN_MAX_CHARS}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        hint="The first part of the address. In a project, it ends with the project's slug: shop-staging."
      />
    </DialogButton>
  );
}

function Names({ names }: { names: readonly ReservedSubdomain[] }) {
  const { max_reserved_subdomains: max } = useMe().entitlements;
  return (
    <Section
      title={
        max === null
          ? formatQuantity(names.length, "name")
          : `${formatCount(names.length)} of ${formatQuantity(max, "name")}`
      }
    >
      <Rows>
        {names.map((name) => (
          <NameRow key={name.id} name={name} />
        ))}
      </Rows>
    </Section>
  );
}
