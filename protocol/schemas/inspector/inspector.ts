/** Queries of captured requests. */
import { z } from "zod";
import { INSPECTOR_PATH_MAX_CHARS, METHOD_MAX_CHARS } from "../../limits.ts";
import { FIELD_NAME_RULE, NumberTextOr, STORABLE_RULE, TypedInstant, Uuid } from "../scalars.ts";

export const INSPECTOR_LIST_MAX_ROWS = 500;
const INSPECTOR_LIST_DEFAULT_ROWS = 100;

export const InspectorQuery = z.object({
  tunnel_id: Uuid.optional().describe(
    "Default: the tunnels of the organization that were served most recently.",
  ),
  limit: NumberTextOr(INSPECTOR_LIST_DEFAULT_ROWS, 1, INSPECTOR_LIST_MAX_ROWS),
  after: Uuid.optional().describe("The id of the last request of the previous page."),
  method: z
    .string()
    .max(METHOD_MAX_CHARS)
    .regex(FIELD_NAME_RULE[0], "must be an HTTP method")
    .toUpperCase()
    .optional(),
  status: z
    .string()
    .regex(/^[1-5](\d\d|[xX]{2})$/, "must be a status such as 404, or a class such as 4xx")
    .optional()
    .describe("`404`, or `4xx`."),
  path: z
    .string()
    .min(1)
    .max(INSPECTOR_PATH_MAX_CHARS)
    .regex(...STORABLE_RULE)
    .optional()
    .describe("A part of the path."),
  since: TypedInstant.optional().describe("RFC 3339. Older requests are not returned."),
});
export type InspectorQuery = z.output<typeof InspectorQuery>;

/** The tunnel whose captured requests are deleted. */
export const ClearQuery = z.object({ tunnel_id: Uuid });

/** HAR 1.2, with the extensions of docs/protocols/live-view.md. */
export const Archive = z.object({
  log: z.object({
    version: z.literal("1.2"),
    creator: z.object({ name: z.string(), version: z.string() }),
    pages: z.array(z.unknown()).max(0),
    entries: z.array(
      z.looseObject({
        startedDateTime: z.string(),
        time: z.number(),
        request: z.looseObject({ method: z.string(), url: z.string() }),
        response: z.looseObject({ status: z.int() }),
      }),
    ),
  }),
});
