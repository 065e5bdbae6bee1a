/**
 * The shape of underpass.yml. The options of a tunnel are those of `underpass http` and `underpass tcp`, so that an option of
 * the command line is in the file too.
 */
import { z } from "zod";
import { INSPECT_OPTION } from "../inspect/inspect-address.ts";
import { API_OPTIONS } from "../options/access-options.ts";
import type { OptionSpec, OptionSpecs } from "../options.ts";
import { TCP_TUNNEL_OPTIONS } from "../tcp/tcp-options.ts";
import { HTTP_TUNNEL_OPTIONS } from "../tunnel/http-options.ts";
import { toKey } from "./option-keys.ts";

const Text = z.union([z.string(), z.number()], { error: "must be text" });

function toField(spec: OptionSpec): z.ZodType {
  switch (spec.kind) {
    case "text":
      return Text.optional().describe(spec.help);
    case "flag":
      return z.boolean({ error: "must be true or false" }).optional().describe(spec.help);
    case "list":
      return z
        .union([Text, z.array(Text)], { error: "must be a list" })
        .optional()
        .describe(spec.help);
  }
}

/** Options of a tunnel that are one of `underpass start` on the command line, where they are for all tunnels. */
export const FILE_OPTIONS = {
  inspect: {
    ...INSPECT_OPTION.inspect,
    help: "a local address at which programs can read only this tunnel's state and requests, or off (default: the inspector of all tunnels)",
  },
} as const satisfies OptionSpecs;

function toFields(specs: Record<string, OptionSpec>): Record<string, z.ZodType> {
  return Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [toKey(name), toField(spec)]),
  );
}

const notMapping = { error: "must have options, each on a line of its own" };

const HttpTunnelFields = z.strictObject(
  {
    local: Text.describe(
      "the local server: a port, host:port, URL or unix:path; or a file or directory",
    ),
    protocol: z.literal("http").optional().describe("http (default) or tcp"),
    ...toFields({ ...HTTP_TUNNEL_OPTIONS, ...FILE_OPTIONS }),
  },
  notMapping,
);

const TcpTunnelFields = z.strictObject(
  {
    local: Text.describe("the local server: a port, host:port or unix:path"),
    protocol: z.literal("tcp").describe("http (default) or tcp"),
    ...toFields({ ...TCP_TUNNEL_OPTIONS, ...FILE_OPTIONS }),
  },
  notMapping,
);

/** The fields of a tunnel by its protocol. */
export const TUNNEL_FIELDS = { http: HttpTunnelFields, tcp: TcpTunnelFields };

export const ConfigFields = z.strictObject(
  {
    $schema: z.string().optional().describe("the JSON Schema of this file, for editors"),
    version: z.literal(1, { error: "must be 1" }).describe("the version of the file's format"),
    ...toFields(API_OPTIONS),
    tunnels: z
      .record(
        z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/, {
          error: "a tunnel's name has up to 63 letters, digits, dots, hyphens and underscores",
        }),
        z.discriminatedUnion("protocol", [HttpTunnelFields, TcpTunnelFields], {
          error: ({ code }) =>
            code === "invalid_union" ? "must be http or tcp" : notMapping.error,
        }),
        { error: "must have tunnels, each with a name" },
      )
      .describe("the tunnels by their names"),
  },
  { error: "the file must have version and tunnels" },
);

/** The JSON Schema of the file, with which editors complete and check it. */
export function buildJsonSchema(): object {
  const schema = z.toJSONSchema(ConfigFields, { io: "input" });
  return { title: "underpass.yml", ...schema };
}
