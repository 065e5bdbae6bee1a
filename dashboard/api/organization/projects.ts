/** The projects of the organization. */
import { queryOptions } from "@tanstack/react-query";
import type { Project } from "../../../protocol/schemas/organizations/projects.ts";
import { loadList } from "../lists.ts";

export const projectsQuery = queryOptions({
  queryKey: ["projects"],
  queryFn: ({ signal }) => loadList<Project>("/projects", signal),
});
