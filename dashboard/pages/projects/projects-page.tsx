/** /projects: namespaces of tunnels. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { PROJECT_NAME_MAX_CHARS } from "../../../protocol/limits.ts";
import { SUBDOMAIN_MAX_CHARS } from "../../../protocol/names.ts";
import type { Project } from "../../../protocol/schemas/organizations/projects.ts";
import { projectsQuery } from "../../api/organization/projects.ts";
import { tokensQuery } from "../../api/organization/tokens.ts";
import { call } from "../../api/session.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { useHasRole } from "../../app/roles.ts";
import { CommandLine } from "../../ui/command-line.tsx";
import { notify } from "../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Skeleton } from "../../ui/feedback/skeleton.tsx";
import { DialogButton } from "../../ui/forms/dialog.tsx";
import { TextField } from "../../ui/forms/fields.tsx";
import { formatQuantity } from "../../ui/numbers.ts";
import { PageFrame } from "../../ui/page.tsx";
import { Rows, Section } from "../../ui/section.tsx";
import { NewTokenProvider } from "../tokens/minting/new-token-dialog.tsx";
import { ProjectRow } from "./project-row.tsx";

export function Page() {
  const projects = useQuery(projectsQuery);
  const canChange = useHasRole("member");
  // The rows show the numbers of both for each project, and would move if the numbers arrived later.
  const tunnels = useQuery(tunnelsQuery);
  const tokens = useQuery(tokensQuery);
  const areCountsLoading = tunnels.isPending || tokens.isPending;
  return (
    <NewTokenProvider>
      <PageFrame
        title="Projects"
        about="The names of a project's tunnels end with its slug. A token can be restricted to one project."
        actions={canChange ? <CreateButton /> : undefined}
      >
        <QueryContent query={projects} lines={6}>
          {(list) => (areCountsLoading ? <Skeleton lines={6} /> : <Projects projects={list} />)}
        </QueryContent>
      </PageFrame>
    </NewTokenProvider>
  );
}

function Projects({ projects }: { projects: readonly Project[] }) {
  const slug = projects.find(({ isDefault }) => !isDefault)?.slug ?? "staging";
  return (
    <>
      <Section title={formatQuantity(projects.length, "project")}>
        <Rows>
          {projects.map((project) => (
            <ProjectRow key={project.id} project={project} />
          ))}
        </Rows>
      </Section>
      <CommandLine
        changes={[
          `http 3000 --project ${slug}`,
          `tokens mint ci --project ${slug} --output ci.token`,
        ]}
        requests={[
          { label: "List the projects", path: "/projects" },
          {
            label: "Create one",
            method: "POST",
            path: "/projects",
            body: { slug, name: "Staging" },
          },
        ]}
      />
    </>
  );
}

function CreateButton() {
  const queries = useQueryClient();
  return (
    <DialogButton
      button={{ children: "Create a project", kind: "primary" }}
      title="Create a project"
      submit="Create"
      onSubmit={async (value) => {
        const body = { slug: value("slug").trim(), name: value("name") };
        const { name } = await call<Project>("POST", "/projects", body);
        await queries.invalidateQueries(projectsQuery);
        notify(`${name} was created.`);
      }}
    >
      <TextField name="name" label="Name" maxLength={PROJECT_NAME_MAX_CHARS} autoComplete="off" />
      <TextField
        name="slug"
        label="Slug"
        placeholder="staging"
        maxLength={SUBDOMAIN_MAX_CHARS}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        hint="Added to the names of this project's tunnels: api becomes api-staging. It can't be changed."
      />
    </DialogButton>
  );
}
