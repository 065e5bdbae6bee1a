/** The settings in wrangler.toml that workerd needs as well: Cloudflare and a self-hosted server share them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { z } from "zod";
import { ROOT } from "../build/build.ts";

const WranglerToml = z
  .object({
    compatibility_date: z.string(),
    compatibility_flags: z.array(z.string()),
    durable_objects: z.object({
      bindings: z.array(z.object({ name: z.string(), class_name: z.string() })),
    }),
  })
  .transform((toml) => ({
    compatibilityDate: toml.compatibility_date,
    compatibilityFlags: toml.compatibility_flags,
    objects: toml.durable_objects.bindings.map(({ name, class_name: className }) => ({
      binding: name,
      className,
    })),
  }));

export const WRANGLER_CONFIG = WranglerToml.parse(
  parse(readFileSync(join(ROOT, "wrangler.toml"), "utf8")),
);
