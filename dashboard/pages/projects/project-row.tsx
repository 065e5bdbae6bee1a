/** One project: how many tunnels and tokens it has, and what can be done with it. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { PROJECT_NAME_MAX_CHARS } from "../../../protocol/limits.ts";
import type { Project } from "../../../protocol/schemas/organizations/projects.ts";
import { projectsQuery } from "../../api/organization/projects.ts";
import { call } from "../../api/session.ts";
import { isValidToken, tokensQuery } from "../../api/organization/tokens.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { useHasRole } from "../../app/roles.ts";
import { notify } from "../../ui/feedback/notifications.tsx";
import { OpenConfirmDialog, OpenFormDialog } from "../../ui/forms/dialog.tsx";
import { TextField } from "../../ui/forms/fields.tsx";
import { ActionsMenu, MenuItem, MenuSeparator } from "../../ui/menu.tsx";
import { formatQuantity } from "../../ui/numbers.ts";
import { Detail, Row } from "../../ui/section.tsx";
import { RelativeTime } from "../../ui/time.tsx";
import { MintTokenDialog } from "../tokens/minting/mint-token-dialog.tsx";

export function ProjectRow({ project }: { project: Project }) {
  const { slug, name, isDefault, createdAt } = project;
  const counts = useCounts(slug);
  const canChange = useHasRole("member");
  return (
    <Row actions={canChange ? <ProjectActions project={project} counts={counts} /> : undefined}>
      <strong>
        <bdi>{name}</bdi>
      </strong>
      <code>{slug}</code>
      <Detail>
        <Link to="/tunnels" search={{ project: slug }}>
          {formatKnown(counts.tunnels, "tunnel")}
        </Link>
        {" · "}
        <Link to="/tokens" search={{ project: slug }}>
          {formatKnown(counts.tokens, "token")}
        </Link>
        {" · "}
        {isDefault ? "names without a suffix" : `names end with -${slug}`}
        {" · created "}
        <RelativeTime timestamp={createdAt} />
      </Detail>
    </Row>
  );
}

interface Counts {
  /** undefined while they are loaded. */
  tunnels: number | undefined;
  /** The valid tokens that are restricted to the project. */
  tokens: number | undefined;
}

function useCounts(slug: string): Counts {
  const tunnels = useQuery(tunnelsQuery).data;
  const tokens = useQuery(tokensQuery).data;
  return {
    tunnels: tunnels?.filter(({ projectSlug }) => projectSlug === slug).length,
    tokens: tokens?.filter((token) => token.projectSlug === slug && isValidToken(token)).length,
  };
}

function formatKnown(count: number | undefined, noun: string): string {
  return count === undefined ? `${noun}s` : formatQuantity(count, noun);
}

interface ActionsProps {
  project: Project;
  counts: Counts;
}

function ProjectActions({ project, counts }: ActionsProps) {
  const { slug, name, isDefault } = project;
  const queries = useQueryClient();
  const [shown, setShown] = useState<"mint" | "rename" | "delete" | null>(null);
  const close = () => setShown(null);
  return (
    <>
      <ActionsMenu name={name}>
        <MenuItem onClick={() => setShown("mint")}>Mint a token…</MenuItem>
        <MenuItem onClick={() => setShown("rename")}>Rename…</MenuItem>
        {!isDefault && (
          <>
            <MenuSeparator />
            <MenuItem onClick={() => setShown("delete")}>Delete…</MenuItem>
          </>
        )}
      </ActionsMenu>
      <MintTokenDialog isOpen={shown === "mint"} onClose={close} project={slug} />
      <OpenFormDialog
        isOpen={shown === "rename"}
        onClose={close}
        title={`Rename ${name}`}
        submit="Rename"
        onSubmit={async (value) => {
          const renamed = await call<Project>("PATCH", `/projects/${slug}`, {
            name: value("name"),
          });
          await queries.invalidateQueries(projectsQuery);
          notify(`${name} is now ${renamed.name}.`);
        }}
      >
        <TextField
          name="name"
          label="New name"
          defaultValue={name}
          maxLength={PROJECT_NAME_MAX_CHARS}
          autoComplete="off"
          hint={`The slug stays ${slug}, because it is a part of addresses.`}
        />
      </OpenFormDialog>
      <OpenConfirmDialog
        isOpen={shown === "delete"}
        onClose={close}
        title={`Delete ${name}?`}
        submit="Delete"
        name={slug}
        onSubmit={async () => {
          await call("DELETE", `/projects/${slug}`);
          await Promise.all(
            [projectsQuery, tunnelsQuery, tokensQuery].map(({ queryKey }) =>
              queries.invalidateQueries({ queryKey }),
            ),
          );
          notify(`${name} was deleted.`);
        }}
      >
        <p>
          This ends {formatKnown(counts.tunnels, "tunnel")}, whose settings and captured requests
          are deleted, and revokes {formatKnown(counts.tokens, "token")}.
        </p>
      </OpenConfirmDialog>
    </>
  );
}
