/** Projects: a namespace for tunnels and their tokens. */
import { z } from "zod";
import { PROJECT_NAME_MAX_CHARS } from "../../limits.ts";
import { Instant, Label, VisibleLine } from "../scalars.ts";

export const Project = z.object({
  id: z.uuid(),
  slug: z.string(),
  name: z.string(),
  isDefault: z
    .boolean()
    .describe("Every organization has a default project permanently; its tunnels have no suffix."),
  createdAt: Instant,
});
export type Project = z.infer<typeof Project>;

export const ProjectSlug = z.object({ slug: Label });
export const CreateProject = z.object({
  slug: Label,
  name: VisibleLine(PROJECT_NAME_MAX_CHARS),
});
export const RenameProject = z.object({ name: VisibleLine(PROJECT_NAME_MAX_CHARS) });
