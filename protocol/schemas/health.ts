/** The answer of `/health`. */
import { z } from "zod";

export const Health = z.object({ status: z.string(), version: z.string() });
