/** What the Worker answers when the self-hosted server has it run its scheduled jobs. */
import { z } from "zod";

export const CronResult = z.object({
  /** The number of jobs that have failed. The Worker has logged why. */
  failed: z.int().nonnegative(),
});
export type CronResult = z.output<typeof CronResult>;
