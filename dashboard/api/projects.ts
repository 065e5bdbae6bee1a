/** The projects of the organization. */
import { queryOptions } from "@tanstack/react-query";
import type { Project } from "../../protocol/schemas/organizations/projects.ts";
import { call } from "./session.ts";

export const projectsQuery = queryOptions({
  queryKey: ["projects"],
  queryFn: ({ signal }) => call<Project[]>("GET", "/projects", undefined, signal),
});
