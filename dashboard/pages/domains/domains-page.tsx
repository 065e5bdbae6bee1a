/** /domains: the custom domains of the organization: to add and verify one, and to choose the tunnel that it leads to. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { domainsQuery } from "../../api/domains.ts";
import { call } from "../../api/session.ts";
import { useHasRole } from "../../app/roles.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { formatAgentCommand } from "../../ui/text/agent-command.ts";
import { EmptyState } from "../../ui/feedback/empty-state.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { DialogButton } from "../../ui/forms/dialog.tsx";
import { TextField } from "../../ui/forms/fields.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { Rows, Section } from "../../ui/section.tsx";
import { UnverifiedDomain } from "./unverified-domain.tsx";
import { VerifiedDomain } from "./verified-domain.tsx";
import "./domains.css";

export function Page() {
  const canChange = useHasRole("member");
  const domains = useQuery(domainsQuery);
  const { id = ":id", domain = "app.example.com" } = domains.data?.[0] ?? {};
  return (
    <PageFrame
      title="Custom domains"
      about="Visitors reach a tunnel at a domain of yours, as soon as a DNS record proves that it is yours."
      actions={canChange ? <AddDomainButton /> : undefined}
    >
      <QueryContent query={domains} lines={6}>
        {(list) => (list.length === 0 ? <NoDomains /> : <Domains domains={list} />)}
      </QueryContent>
      <CommandLine
        changes={[`http 3000 --url https://${domain}`]}
        requests={[
          { label: "List the domains", path: "/domains" },
          { label: "Add one", method: "POST", path: "/domains", body: { domain } },
          { label: "Verify it", method: "POST", path: `/domains/${id}/verify` },
        ]}
      />
    </PageFrame>
  );
}

function NoDomains() {
  const title = "No domain has been added yet";
  if (!useHasRole("member")) return <EmptyState title={title} />;
  return (
    <EmptyState
      title={title}
      commands={[formatAgentCommand("http 3000 --url https://app.example.com")]}
    >
      <p>Add a domain here and verify it. Then this command serves it from your machine.</p>
    </EmptyState>
  );
}

function AddDomainButton() {
  const queries = useQueryClient();
  return (
    <DialogButton
      button={{ children: "Add a domain", kind: "primary" }}
      title="Add a domain"
      submit="Add"
      onSubmit={async (value) => {
        const { domain } = await call<CustomDomain>("POST", "/domains", {
          domain: value("domain"),
        });
        await queries.invalidateQueries(domainsQuery);
        notify(`${domain} was added. Publish its DNS record next.`);
      }}
    >
      <TextField
        name="domain"
        label="Domain"
        placeholder="app.example.com"
        inputMode="url"
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        hint="A domain or subdomain whose DNS records you can change."
      />
    </DialogButton>
  );
}

function Domains({ domains }: { domains: readonly CustomDomain[] }) {
  const verified = domains.filter((domain) => domain.verified);
  const unverified = domains.filter((domain) => !domain.verified);
  return (
    <>
      {unverified.length > 0 && (
        <Section title="Waiting for their DNS record">
          <Rows>
            {unverified.map((domain) => (
              <UnverifiedDomain key={domain.id} domain={domain} />
            ))}
          </Rows>
        </Section>
      )}
      {verified.length > 0 && (
        <Section title="Verified">
          <Rows>
            {verified.map((domain) => (
              <VerifiedDomain key={domain.id} domain={domain} />
            ))}
          </Rows>
        </Section>
      )}
    </>
  );
}
