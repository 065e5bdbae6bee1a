/** What of the captured requests is asked for. */
import { z } from "zod";
import { METHOD_MAX_CHARS } from "../../limits.ts";
import { FIELD_NAME, STORABLE } from "../scalars.ts";

const INSPECTOR_LIST_MAX_ROWS = 500;
const INSPECTOR_LIST_DEFAULT_ROWS = 100;
/** What a filter looks for in a path. */
const INSPECTOR_PATH_MAX_CHARS = 1_000;

export const InspectorQuery = z.object({
  /** Left out: the tunnels of the organization that were served last. */
  tunnel_id: z.uuid().toLowerCase().optional(),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(INSPECTOR_LIST_MAX_ROWS)
    .default(INSPECTOR_LIST_DEFAULT_ROWS),
  /** The id of the last one that was seen. */
  after: z.uuid().toLowerCase().optional(),
  method: z
    .string()
    .max(METHOD_MAX_CHARS)
    .regex(FIELD_NAME[0], "must be a method")
    .toUpperCase()
    .optional(),
  /** `404`, or `4xx`. */
  status: z
    .string()
    .regex(/^[1-5](\d\d|[xX]{2})$/, "must be a status, or a class of them: 4xx")
    .optional(),
  /** A part of it. */
  path: z
    .string()
    .min(1)
    .max(INSPECTOR_PATH_MAX_CHARS)
    .regex(...STORABLE)
    .optional(),
  /** RFC 3339. Nothing older is in the answer. */
  since: z.iso.datetime({ offset: true }).optional(),
});
export type InspectorQuery = z.output<typeof InspectorQuery>;

/** Whose captured requests are cleared. */
export const ClearQuery = z.object({ tunnel_id: z.uuid().toLowerCase() });

/** HAR 1.2; docs/live-view.md says what of its own is in it. */
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
